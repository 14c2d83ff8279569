/* nl-perplexity: ids in, negative log-likelihoods out. See nl-perplexity(1). */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "cli_progress.h"
#include "cli_stream.h"
#include "compare.h"
#include "perplexity.h"

static const char help[] =
    "usage: nl-perplexity [OPTION]... < IDS\n"
    "       nl-perplexity --reference LOGITS [OPTION]... < LOGITS\n"
    "Tell how well a language model predicts sequences of token ids; or how far two runs over\n"
    "the same ids are apart.\n"
    "\n" NL_MODEL_HELP "      --window N                ids that are seen at once (the context)\n"
    "      --stride N                ids from one window to the next (the window)\n"
    "      --windows N               score only the first N windows of a sequence\n"
    "      --whole                   leave out a last window that is shorter\n"
    "      --reference FILE          compare the logits on standard input with these\n"
    "      --tokens                  a line for every id too\n"
    "      --json                    JSON lines in place of a table\n" CLI_HELP;

struct options {
    struct cli_common common;
    struct nl_model_options model;
    const char *reference;
    bool tokens, scoring; /* scoring: an option that is for scoring alone was given */
};

struct program {
    struct options options;
    struct nl_perplexity perplexity;
    struct nl_compare compare;
    struct cli_progress progress;
    FILE *out;
    const char *out_name;  /* for messages */
    enum nl_status status; /* of the first sequence that failed */
};

enum { OPTION_WINDOW = 0x100, OPTION_STRIDE, OPTION_WINDOWS, OPTION_WHOLE, OPTION_TOKENS, OPTION_REFERENCE };
enum { ROWS = 64 }; /* of logits that a step makes */

static const struct option table[] = {
    NL_MODEL_LONG_OPTIONS,
    {"window", required_argument, NULL, OPTION_WINDOW},
    {"stride", required_argument, NULL, OPTION_STRIDE},
    {"windows", required_argument, NULL, OPTION_WINDOWS},
    {"whole", no_argument, NULL, OPTION_WHOLE},
    {"tokens", no_argument, NULL, OPTION_TOKENS},
    {"reference", required_argument, NULL, OPTION_REFERENCE},
    {"json", no_argument, NULL, CLI_JSON},
    CLI_OPTIONS,
    {0},
};

static bool take_option(struct program *program, int c)
{
    struct nl_perplexity *p = &program->perplexity;
    if (c == OPTION_TOKENS)
        program->options.tokens = true;
    else if (c == OPTION_REFERENCE)
        program->options.reference = optarg;
    if (c == OPTION_TOKENS || c == OPTION_REFERENCE)
        return true;
    program->options.scoring = true;
    if (c == OPTION_WINDOW)
        p->window = (uint32_t)cli_whole("--window", optarg, 2, INT32_MAX);
    else if (c == OPTION_STRIDE)
        p->stride = (uint32_t)cli_whole("--stride", optarg, 1, INT32_MAX);
    else if (c == OPTION_WINDOWS)
        p->max_windows = cli_whole("--windows", optarg, 1, INT64_MAX);
    else if (c == OPTION_WHOLE)
        p->whole_windows = true;
    else
        return false;
    return true;
}

static void parse_options(struct program *program, int argc, char **argv)
{
    struct options *options = &program->options;
    struct nl_error error;
    int c;
    program->perplexity.max_windows = UINT64_MAX;
    while ((c = getopt_long(argc, argv, CLI_SHORT_OPTIONS NL_MODEL_SHORT_OPTIONS, table, NULL)) != -1)
        if (!cli_common_option(&options->common, c, argv, help) && !take_option(program, c))
            cli_taken(nl_model_option(&options->model, c, optarg, &error), &error);
    cli_no_operands(argc, argv);
    if (options->reference && options->scoring)
        cli_usage("--reference runs no model: it goes with --tokens and --json only");
    if (program->perplexity.window && program->perplexity.stride > program->perplexity.window)
        cli_usage("--stride is larger than --window: ids would be left out");
    options->model.engine.max_outputs = ROWS;
    options->model.engine.batch = 1;
}

static bool in_json(const struct program *program)
{
    return program->options.common.form == NL_JSON_LINES;
}

/* A full disk is told when it happens, not after hours. */
static int check_output(struct program *program, struct nl_error *error)
{
    if (fflush(program->out) != 0 || ferror(program->out))
        return nl_fail_io(error, "cannot write", program->out_name);
    return 0;
}

/* A number, as JSON has none for infinity: a string. */
static const char *json_number(char text[40], double value)
{
    snprintf(text, 40, isinf(value) ? "\"inf\"" : "%.9g", value);
    return text;
}

static int write_token(void *context, uint64_t position, uint32_t id, double nll, struct nl_error *error)
{
    struct program *program = context;
    char number[40];
    (void)error;
    cli_progress_clear(&program->progress);
    if (in_json(program))
        fprintf(program->out, "{\"position\":%llu,\"id\":%u,\"nll\":%s}\n", (unsigned long long)position, id,
                json_number(number, nll));
    else
        fprintf(program->out, "token\t%llu\t%u\t%.6f\n", (unsigned long long)position, id, nll);
    return 0;
}

static int write_window(void *context, const struct nl_window *w, struct nl_error *error)
{
    struct program *program = context;
    char number[40];
    cli_progress_clear(&program->progress);
    if (in_json(program))
        fprintf(program->out,
                "{\"sequence\":%llu,\"window\":%llu,\"start\":%llu,\"scored\":%llu,\"nll\":%s}\n",
                (unsigned long long)w->sequence, (unsigned long long)w->number, (unsigned long long)w->start,
                (unsigned long long)w->scored, json_number(number, w->nll));
    else
        fprintf(program->out, "%llu\t%llu\t%llu\t%llu\t%.6f\t%.4f\n", (unsigned long long)w->sequence,
                (unsigned long long)w->number, (unsigned long long)w->start, (unsigned long long)w->scored,
                w->nll, exp(w->nll));
    return check_output(program, error);
}

static void write_total(struct program *program)
{
    const struct nl_perplexity *p = &program->perplexity;
    double mean = p->n_scored ? p->total / (double)p->n_scored : 0;
    char nll[40], perplexity[40];
    if (in_json(program))
        fprintf(program->out,
                "{\"total\":true,\"windows\":%llu,\"scored\":%llu,\"nll\":%s,\"perplexity\":%s}\n",
                (unsigned long long)p->n_windows, (unsigned long long)p->n_scored, json_number(nll, mean),
                json_number(perplexity, exp(mean)));
    else
        fprintf(program->out, "total\t%llu\t\t%llu\t%.6f\t%.4f\n", (unsigned long long)p->n_windows,
                (unsigned long long)p->n_scored, mean, exp(mean));
}

static int write_row(void *context, const struct nl_compared_row *row, struct nl_error *error)
{
    struct program *program = context;
    char kl[40];
    (void)error;
    if (in_json(program))
        fprintf(program->out, "{\"position\":%u,\"kl\":%s,\"top\":%u,\"reference_top\":%u}\n", row->position,
                json_number(kl, row->kl), row->top, row->reference_top);
    else
        fprintf(program->out, "token\t%u\t%.6g\t%u\t%u\n", row->position, row->kl, row->top,
                row->reference_top);
    return 0;
}

static void write_comparison_json(struct program *program, const struct nl_comparison *c, double agree,
                                  bool total)
{
    char mean[40], median[40], max[40], own[40], reference[40];
    fputc('{', program->out);
    if (total)
        fputs("\"total\":true", program->out);
    else
        fprintf(program->out, "\"sequence\":%llu", (unsigned long long)c->sequence);
    fprintf(program->out,
            ",\"positions\":%llu,\"mean\":%s,\"median\":%s,\"max\":%s,\"at\":[%llu,%u],\"agree\":%.9g",
            (unsigned long long)c->positions, json_number(mean, c->mean), json_number(median, c->median),
            json_number(max, c->max), (unsigned long long)c->max_sequence, c->max_position, agree);
    if (c->scored)
        fprintf(program->out, ",\"nll\":%s,\"reference_nll\":%s", json_number(own, c->nll),
                json_number(reference, c->reference_nll));
    fputs("}\n", program->out);
}

static int write_comparison(struct program *program, const struct nl_comparison *c, bool total,
                            struct nl_error *error)
{
    double agree = c->positions ? (double)c->agreed / (double)c->positions : 1;
    if (in_json(program)) {
        write_comparison_json(program, c, agree, total);
        return check_output(program, error);
    }
    if (total)
        fputs("total", program->out);
    else
        fprintf(program->out, "%llu", (unsigned long long)c->sequence);
    fprintf(program->out, "\t%llu\t%.6g\t%.6g\t%.6g\t%llu:%u\t%.6f", (unsigned long long)c->positions,
            c->mean, c->median, c->max, (unsigned long long)c->max_sequence, c->max_position, agree);
    if (c->scored)
        fprintf(program->out, "\t%.6f\t%.6f\n", c->nll, c->reference_nll);
    else
        fputs("\t\t\n", program->out);
    return check_output(program, error);
}

static int write_sequence(void *context, const struct nl_comparison *sequence, struct nl_error *error)
{
    return write_comparison(context, sequence, false, error);
}

static void show_progress(void *context, uint64_t done, uint64_t total)
{
    struct program *program = context;
    cli_progress_show(&program->progress, "scoring", done, total, 1, "ids");
}

/* Scores the ids on standard input. */
static int score(struct program *program, struct nl_error *error)
{
    struct nl_perplexity *p = &program->perplexity;
    cli_progress_begin(&program->progress, program->options.common.quiet);
    p->signal = &cli_signal;
    p->token = program->options.tokens ? write_token : NULL;
    p->done = write_window;
    p->progress = show_progress;
    p->context = program;
    p->report = cli_error;
    cli_intake_open(&p->intake, &program->options.model, nl_perplexity_wait, p);
    if (!in_json(program))
        fputs("sequence\twindow\tstart\tscored\tnll\tperplexity\n", program->out);
    double start = cli_seconds();
    int result = nl_perplexity_run(p, error);
    cli_progress_clear(&program->progress);
    if (result == 0 && !cli_signal)
        write_total(program);
    if (program->options.common.verbose && p->intake.engine)
        cli_message("%llu ids scored in %.2f s: %s", (unsigned long long)p->n_scored, cli_seconds() - start,
                    nl_engine_backend(p->intake.engine));
    nl_reader_close(p->intake.reader);
    nl_intake_close(&p->intake);
    program->status = p->status;
    return result;
}

static void open_side(struct nl_compare_side *side, int fd, const char *name, struct nl_compare *compare)
{
    side->name = name;
    side->reader = cli_reader_open(fd, name, nl_compare_wait, compare);
    nl_reader_expect_logits(side->reader);
}

/* Compares the logits on standard input with the reference's. */
static int compare(struct program *program, struct nl_error *error)
{
    struct nl_compare *c = &program->compare;
    const char *path = program->options.reference;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* of a FIFO: the reader waits for its writer */
    if (fd < 0)
        return nl_fail_errno(error, "cannot open", path);
    c->signal = &cli_signal;
    c->row = program->options.tokens ? write_row : NULL;
    c->done = write_sequence;
    c->context = program;
    open_side(&c->run, STDIN_FILENO, "standard input", c);
    open_side(&c->reference, fd, path, c);
    if (!in_json(program))
        fputs("sequence\tpositions\tmean\tmedian\tmax\tat\tagree\tnll\treference_nll\n", program->out);
    int result = nl_compare_run(c, error);
    if (result == 0 && !cli_signal)
        result = write_comparison(program, &c->total, true, error);
    nl_reader_close(c->run.reader);
    nl_reader_close(c->reference.reader);
    close(fd);
    nl_compare_free(c);
    program->status = c->status;
    return result;
}

int main(int argc, char **argv)
{
    cli_start("nl-perplexity");
    struct program program = {0};
    struct nl_error error = {0};
    struct cli_file file;
    parse_options(&program, argc, argv);
    cli_file_open(&file, program.options.common.output);
    program.out_name = file.name;
    program.out = file.to_file ? fdopen(file.fd, "w") : stdout;
    int result = program.options.reference ? compare(&program, &error) : score(&program, &error);
    if (file.to_file && result == 0)
        result = check_output(&program, &error);
    int status = cli_outcome(result, program.status, &error);
    cli_exit(cli_file_close(&file, result == 0 && !cli_signal, status));
}
