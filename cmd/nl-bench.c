/* nl-bench: how long the steps of a model take. See nl-bench(1). */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench.h"
#include "cli_progress.h"
#include "cli_stream.h"
#include "escape.h"
#include "modelpath.h"
#include "number.h"

static const char help[] =
    "usage: nl-bench [OPTION]...\n"
    "Measure how long the steps of a language model take, with and without its cache. With -n,\n"
    "--prefill or --decode only what they name is measured, else all with their defaults.\n"
    "\n"
    "  -m, --model MODEL             a folder, or ORG/NAME[@REVISION] of the Hugging Face cache\n"
    "  -n, --new N                   the loop: so many ids, cached and naive (128)\n"
    "      --prompt N                ids of its prompt (32)\n"
    "      --no-naive                only the loop with the cache\n"
    "      --prefill N,...           time prompts of so many ids (1,64,512)\n"
    "      --decode N,...            time one id after so many others (0,512,2048)\n"
    "      --repeat N                runs that count (3)\n"
    "      --warm-up N               runs before them (1)\n"
    "      --ids FILE                the ids to use, an id stream (made up)\n"
    "      --json                    JSON lines in place of a table\n"
    "  -c, --context N               positions of a sequence (max_position_embeddings)\n"
    "      --prefill-chunk N         ids of a prompt that go through at once (512)\n"
    "      --threads N               (the cores that may be used)\n"
    "      --device DEVICE           auto, cpu, cuda, cuda:N\n"
    "      --dtype TYPE              of activations: float32, bfloat16\n" CLI_HELP;

enum {
    OPTION_PROMPT = 0x100,
    OPTION_NO_NAIVE,
    OPTION_PREFILL,
    OPTION_DECODE,
    OPTION_REPEAT,
    OPTION_WARM_UP,
    OPTION_IDS
};
enum { PROMPT = 32 /* of the loop, where nothing else is said */ };
enum { MAX_IDS = 1 << 24, MAX_RUNS = 10000 };

static const struct option table[] = {
    {"model", required_argument, NULL, 'm'},
    {"new", required_argument, NULL, 'n'},
    {"prompt", required_argument, NULL, OPTION_PROMPT},
    {"no-naive", no_argument, NULL, OPTION_NO_NAIVE},
    {"prefill", required_argument, NULL, OPTION_PREFILL},
    {"decode", required_argument, NULL, OPTION_DECODE},
    {"repeat", required_argument, NULL, OPTION_REPEAT},
    {"warm-up", required_argument, NULL, OPTION_WARM_UP},
    {"ids", required_argument, NULL, OPTION_IDS},
    {"json", no_argument, NULL, CLI_JSON},
    {"context", required_argument, NULL, 'c'},
    {"prefill-chunk", required_argument, NULL, NL_MODEL_PREFILL_CHUNK},
    {"threads", required_argument, NULL, NL_MODEL_THREADS},
    {"device", required_argument, NULL, NL_MODEL_DEVICE},
    {"dtype", required_argument, NULL, NL_MODEL_DTYPE},
    CLI_OPTIONS,
    {0},
};

struct program {
    struct cli_common common;
    struct nl_model_options model;
    struct nl_bench bench;
    bool loop, chosen;             /* chosen: -n, --prefill or --decode was given */
    struct nl_ids prefill, decode; /* lengths and depths */
    const char *ids_path;
    struct nl_ids ids;     /* of ids_path */
    char name[256];        /* of the model, for the output */
    struct nl_buf command; /* as it was given */
    struct cli_progress progress;
    uint64_t done, work; /* ids */
    FILE *out;
    const char *out_name; /* for messages */
};

static void take_list(struct nl_ids *list, const char *option)
{
    struct nl_error error;
    const char *text = optarg;
    list->count = 0;
    int taken = nl_take_ids(&text, list, &error);
    if (taken < 0)
        cli_die(&error);
    if (taken == 0 || *text)
        cli_usage("%s takes whole numbers with commas between them, not '%s'", option, optarg);
}

static bool take_option(struct program *program, int c)
{
    struct nl_bench *bench = &program->bench;
    if (c == 'n') {
        bench->n_new = (uint32_t)cli_whole("--new", optarg, 1, MAX_IDS);
        program->loop = true;
    } else if (c == OPTION_PROMPT) {
        bench->prompt = (uint32_t)cli_whole("--prompt", optarg, 1, MAX_IDS);
    } else if (c == OPTION_NO_NAIVE) {
        bench->naive = false;
    } else if (c == OPTION_PREFILL) {
        take_list(&program->prefill, "--prefill");
    } else if (c == OPTION_DECODE) {
        take_list(&program->decode, "--decode");
    } else if (c == OPTION_REPEAT) {
        bench->repeat = (uint32_t)cli_whole("--repeat", optarg, 1, MAX_RUNS);
    } else if (c == OPTION_WARM_UP) {
        bench->warm_up = (uint32_t)cli_whole("--warm-up", optarg, 0, MAX_RUNS);
    } else if (c == OPTION_IDS) {
        program->ids_path = optarg;
    } else {
        return false;
    }
    program->chosen |= c == 'n' || c == OPTION_PREFILL || c == OPTION_DECODE;
    return true;
}

static void parse_options(struct program *program, int argc, char **argv)
{
    struct nl_error error;
    int c;
    program->bench = (struct nl_bench){.n_new = 128, .warm_up = 1, .repeat = 3, .naive = true};
    while ((c = getopt_long(argc, argv, CLI_SHORT_OPTIONS "m:n:c:", table, NULL)) != -1)
        if (!cli_common_option(&program->common, c, argv, help) && !take_option(program, c))
            cli_taken(nl_model_option(&program->model, c, optarg, &error), &error);
    cli_no_operands(argc, argv);
    for (size_t i = 0; i < program->prefill.count; i++)
        if (program->prefill.data[i] == 0)
            cli_usage("--prefill: a prompt has at least one id");
    nl_buf_puts(&program->command, "nl-bench");
    for (int i = 1; i < argc; i++)
        nl_buf_printf(&program->command, " %s", argv[i]);
    program->model.engine.batch = 1;
}

/* Without a choice everything is measured, as far as the context reaches. */
static int choose_defaults(struct program *program, struct nl_error *error)
{
    static const uint32_t lengths[] = {1, 64, 512}, depths[] = {0, 512, 2048};
    struct nl_bench *bench = &program->bench;
    uint32_t context = nl_engine_context(bench->engine);
    bool given = bench->prompt > 0;
    bench->prompt = given ? bench->prompt : PROMPT;
    if (program->chosen)
        return 0;
    program->loop = given || bench->prompt <= context;
    if (bench->prompt <= context && bench->n_new > context - bench->prompt + 1)
        bench->n_new = context - bench->prompt + 1;
    for (size_t i = 0; i < 3; i++)
        if ((lengths[i] <= context && nl_ids_add(&program->prefill, &lengths[i], 1, error) != 0) ||
            (depths[i] < context && nl_ids_add(&program->decode, &depths[i], 1, error) != 0))
            return -1;
    return 0;
}

/* What is too long is told before hours of work. */
static int check_lengths(const struct program *program, struct nl_error *error)
{
    const struct nl_bench *bench = &program->bench;
    uint64_t longest = program->loop ? (uint64_t)bench->prompt + bench->n_new - 1 : 0;
    for (size_t i = 0; i < program->prefill.count; i++)
        longest = program->prefill.data[i] > longest ? program->prefill.data[i] : longest;
    for (size_t i = 0; i < program->decode.count; i++)
        longest = program->decode.data[i] >= longest ? program->decode.data[i] + UINT64_C(1) : longest;
    return nl_bench_check_length(bench, longest, error);
}

/* The ids of the first sequence in a file. */
static int read_ids(struct program *program, struct nl_error *error)
{
    const char *path = program->ids_path;
    struct nl_frame frame;
    int fd = open(path, O_RDONLY | O_CLOEXEC), got;
    if (fd < 0)
        return nl_fail_errno(error, "cannot open", path);
    struct nl_reader *reader = nl_reader_open(fd, path, error);
    int result = reader ? 0 : -1;
    while (result == 0 && (got = nl_reader_next(reader, &frame, error)) != 0 && got > 0 &&
           frame.kind != NL_DONE)
        if (frame.kind == NL_TOKS)
            result = nl_ids_add(&program->ids, frame.ids, frame.count, error);
    if (result == 0 && got < 0)
        result = -1;
    if (result == 0 && program->ids.count == 0)
        result = nl_fail(error, NL_DATA, "no ids in the first sequence: %s", path);
    nl_reader_close(reader);
    close(fd);
    program->bench.ids = program->ids.data;
    program->bench.n_ids = program->ids.count;
    return result;
}

/* What the output calls the model: ORG/NAME, or its folder's own name. */
static void name_model(struct program *program, const char *folder)
{
    const char *given = program->model.model ? program->model.model : getenv("NL_MODEL");
    char *real = realpath(folder, NULL);
    const char *slash = real ? strrchr(real, '/') : NULL;
    bool is_path = !given || !*given || nl_path_exists(given);
    snprintf(program->name, sizeof program->name, "%s", !is_path ? given : slash ? slash + 1 : folder);
    free(real);
}

static int open_model(struct program *program, struct nl_error *error)
{
    struct nl_buf folder = {0};
    int result = nl_model_path(program->model.model, &folder, error);
    if (result == 0) {
        program->bench.engine = nl_engine_open(folder.data, &program->model.engine, error);
        name_model(program, folder.data);
    }
    nl_buf_free(&folder);
    return program->bench.engine ? result : -1;
}

/* One fact about the run: a line of comment in the table, a member in JSON. */
static void fact(struct program *program, const char *key, const char *value, bool number)
{
    struct nl_buf quoted = {0};
    if (program->common.form != NL_JSON_LINES) {
        nl_escape(&quoted, value, 0);
        fprintf(program->out, "# %s\t%s\n", key, quoted.data ? quoted.data : "");
    } else {
        if (!number)
            nl_json_quote(&quoted, value, strlen(value));
        fprintf(program->out, "%s\"%s\":%s", strcmp(key, "program") == 0 ? "{" : ",", key,
                number        ? value
                : quoted.data ? quoted.data
                              : "null");
    }
    nl_buf_free(&quoted);
}

static void number_fact(struct program *program, const char *key, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    fact(program, key, text, true);
}

static void write_facts(struct program *program)
{
    const struct nl_engine *engine = program->bench.engine;
    const struct nl_model *model = nl_engine_model(engine);
    char machine[200], device[32];
    const char *backend = nl_engine_backend(engine);
    size_t n = strcspn(backend, " ");
    nl_machine_name(machine, sizeof machine);
    snprintf(device, sizeof device, "%.*s", (int)n, backend);
    fact(program, "program", "nl-bench " NL_VERSION, false);
    fact(program, "command", program->command.data, false);
    fact(program, "machine", machine, false);
    fact(program, "device", device, false);
    fact(program, "isa", backend + n + (backend[n] != '\0'), false);
    number_fact(program, "threads", nl_engine_threads(engine));
    fact(program, "model", program->name, false);
    fact(program, "architecture", model->config.architecture->name, false);
    number_fact(program, "parameters", nl_bench_parameters(model));
    fact(program, "weights", nl_dtype_name(nl_bench_dtype(model)), false);
    fact(program, "activations", nl_dtype_name(model->plan.bfloat16 ? NL_BF16 : NL_F32), false);
    number_fact(program, "prompt", program->bench.prompt);
    number_fact(program, "warm_up", program->bench.warm_up);
    number_fact(program, "repeat", program->bench.repeat);
    if (program->common.form == NL_JSON_LINES)
        fputs("}\n", program->out);
    else
        fputs("kind\tstep\tlength\tids\tmin_ms\tmedian_ms\tmax_ms\tids_per_s\n", program->out);
}

static int write_row(void *context, const struct nl_bench_row *row, struct nl_error *error)
{
    static const char *const kinds[] = {"cached",      "naive",   "cached-total",
                                        "naive-total", "prefill", "decode"};
    struct program *program = context;
    const char *format =
        program->common.form == NL_JSON_LINES
            ? "{\"kind\":\"%s\",\"step\":%u,\"length\":%u,\"ids\":%llu,\"min_ms\":%.4f,\"median_"
              "ms\":%.4f,\"max_ms\":%.4f,\"ids_per_s\":%.2f}\n"
            : "%s\t%u\t%u\t%llu\t%.4f\t%.4f\t%.4f\t%.2f\n";
    cli_progress_clear(&program->progress);
    fprintf(program->out, format, kinds[row->kind], row->step, row->length, (unsigned long long)row->ids,
            row->time.min * 1e3, row->time.median * 1e3, row->time.max * 1e3, row->n_new / row->time.median);
    if (fflush(program->out) == 0 && !ferror(program->out))
        return 0;
    return nl_fail_io(error, "cannot write", program->out_name);
}

static void show_progress(void *context, uint64_t ids)
{
    struct program *program = context;
    program->done += ids;
    cli_progress_show(&program->progress, "measuring", program->done, program->work, 1, "ids");
}

/* Everything that was chosen. */
static int measure(struct program *program, struct nl_error *error)
{
    struct nl_bench *bench = &program->bench;
    int result = 0;
    if (program->loop)
        program->work += nl_bench_loop_work(bench);
    for (size_t i = 0; i < program->prefill.count; i++)
        program->work += nl_bench_prefill_work(bench, program->prefill.data[i]);
    for (size_t i = 0; i < program->decode.count; i++)
        program->work += nl_bench_decode_work(bench, program->decode.data[i]);
    cli_progress_begin(&program->progress, program->common.quiet);
    if (program->loop)
        result = nl_bench_loop(bench, error);
    for (size_t i = 0; result == 0 && i < program->prefill.count; i++)
        result = nl_bench_prefill(bench, program->prefill.data[i], error);
    for (size_t i = 0; result == 0 && i < program->decode.count; i++)
        result = nl_bench_decode(bench, program->decode.data[i], error);
    cli_progress_clear(&program->progress);
    return result;
}

static int run(struct program *program, struct nl_error *error)
{
    if (open_model(program, error) != 0 || choose_defaults(program, error) != 0 ||
        check_lengths(program, error) != 0 || (program->ids_path && read_ids(program, error) != 0))
        return -1;
    write_facts(program);
    return measure(program, error);
}

int main(int argc, char **argv)
{
    cli_start("nl-bench");
    struct program program = {0};
    struct nl_error error = {0};
    struct cli_file file;
    parse_options(&program, argc, argv);
    cli_file_open(&file, program.common.output);
    program.out_name = file.name;
    program.out = file.to_file ? fdopen(file.fd, "w") : stdout;
    program.bench.signal = &cli_signal;
    program.bench.row = write_row;
    program.bench.progress = show_progress;
    program.bench.context = &program;
    int result = run(&program, &error);
    int status = cli_outcome(result, NL_OK, &error);
    if (result == 0 && !cli_signal && program.common.verbose && program.loop && program.bench.naive)
        cli_message("%u of %u naive steps chose the cached step's id", program.bench.agreed,
                    program.bench.n_new);
    nl_engine_close(program.bench.engine);
    nl_ids_free(&program.prefill);
    nl_ids_free(&program.decode);
    nl_ids_free(&program.ids);
    nl_buf_free(&program.command);
    cli_exit(cli_file_close(&file, result == 0 && !cli_signal, status));
}
