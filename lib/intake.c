#include "intake.h"

#include <stdlib.h>

#include "modelpath.h"
#include "tokenizer.h"

static int open_model(struct nl_intake *intake, const struct nl_json *header, struct nl_error *error)
{
    struct nl_buf folder = {0};
    const char *model = intake->model ? intake->model : nl_json_get_string(header, "model");
    if (nl_model_path(model, &folder, error) != 0) {
        nl_buf_free(&folder);
        return -1;
    }
    intake->folder = folder.data;
    intake->engine = nl_engine_open(intake->folder, &intake->options, error);
    if (!intake->engine)
        return -1;
    return nl_generation_load(intake->folder, &intake->generation, error);
}

/* A stream that says how its tokenizer hashes must be of this model's tokenizer. */
static int check_tokenizer(const struct nl_intake *intake, struct nl_prompt *prompt, struct nl_error *error)
{
    const struct nl_json *tokenizer = nl_json_get(prompt->header, "tokenizer");
    const char *theirs = nl_json_get_string(tokenizer, "sha256");
    char ours[65];
    if (!theirs || intake->any_tokenizer)
        return 0;
    if (nl_tokenizer_hash(intake->folder, ours, error) != 0)
        return -1;
    if (ours[0] && strcmp(ours, theirs) != 0)
        nl_fail(
            &prompt->failure, NL_DATA,
            "the ids are of another tokenizer than the model's (--any-tokenizer takes them all the same): %s",
            intake->folder);
    return 0;
}

static int begin(struct nl_intake *intake, struct nl_prompt *prompt, const struct nl_frame *frame,
                 struct nl_error *error)
{
    prompt->header = nl_json_copy(frame->object, error);
    if (!prompt->header)
        return -1;
    int64_t seq;
    bool numbered = nl_json_integer(nl_json_get(prompt->header, "seq"), 0, INT64_MAX, &seq);
    prompt->seq = numbered ? (uint64_t)seq : intake->n_sequences;
    intake->n_sequences++;
    if (!intake->engine && open_model(intake, prompt->header, error) != 0)
        return -1;
    return check_tokenizer(intake, prompt, error);
}

static int finish(struct nl_prompt *prompt, const struct nl_frame *frame, struct nl_error *error)
{
    prompt->done = nl_json_copy(frame->object, error);
    if (!prompt->done)
        return -1;
    if (nl_prompt_finish_is(prompt, "error"))
        nl_fail(&prompt->failure, NL_UPSTREAM, "%s", "");
    return NL_INTAKE_PROMPT;
}

int nl_intake_next(struct nl_intake *intake, struct nl_prompt *prompt, struct nl_error *error)
{
    struct nl_frame frame;
    int got = nl_reader_next(intake->reader, &frame, error);
    if (got <= 0)
        return got < 0 ? -1 : NL_INTAKE_END;
    switch (frame.kind) {
    case NL_NLS1:
        return begin(intake, prompt, &frame, error) == 0 ? NL_INTAKE_MORE : -1;
    case NL_TOKS:
        return nl_ids_add(&prompt->ids, frame.ids, frame.count, error) == 0 ? NL_INTAKE_MORE : -1;
    case NL_CUTS:
        if (frame.position < prompt->ids.count)
            prompt->ids.count = frame.position;
        return NL_INTAKE_MORE;
    case NL_DONE:
        return finish(prompt, &frame, error);
    case NL_FAIL:
        nl_json_free(intake->upstream_failure);
        intake->upstream_failure = nl_json_copy(frame.object, error);
        return nl_fail(error, NL_UPSTREAM, "%s", "");
    case NL_LGTS:
    case NL_LGTK:
        return nl_fail(error, NL_DATA, "logits where ids are wanted: frame %s", frame.name);
    default: /* frames that may be ignored, and what belongs to session files */
        return NL_INTAKE_MORE;
    }
}

bool nl_prompt_finish_is(const struct nl_prompt *prompt, const char *finish)
{
    const char *theirs = nl_json_get_string(prompt->done, "finish");
    return theirs && strcmp(theirs, finish) == 0;
}

struct nl_json *nl_intake_header(const struct nl_intake *intake, const struct nl_prompt *prompt,
                                 struct nl_error *error)
{
    struct nl_json *header = nl_json_copy(prompt->header, error);
    const struct nl_generation *generation = &intake->generation;
    if (header)
        nl_json_remove(header, "session");
    if (header && nl_json_set_string(header, "model", intake->folder, error) == 0 &&
        nl_json_set_number(header, "seq", (double)prompt->seq, error) == 0 &&
        nl_json_set_number(header, "vocab_size", nl_engine_model(intake->engine)->config.vocab_size, error) ==
            0 &&
        nl_json_set_ids(header, "eos", generation->eos.data, generation->eos.count, error) == 0)
        return header;
    nl_json_free(header);
    return NULL;
}

int nl_intake_write_failure(const struct nl_intake *intake, struct nl_writer *writer,
                            const struct nl_error *cause)
{
    struct nl_error ignored;
    if (!intake->upstream_failure)
        return nl_writer_fail(writer, cause, &ignored);
    if (nl_writer_object(writer, NL_FAIL, intake->upstream_failure, &ignored) != 0)
        return -1;
    return nl_writer_flush(writer, &ignored);
}

int nl_intake_fill_empty(const struct nl_intake *intake, struct nl_prompt *prompt, struct nl_error *error)
{
    if (prompt->ids.count > 0)
        return 0;
    if (!intake->generation.has_bos)
        return nl_fail(error, NL_DATA,
                       "empty prompt, and the model has no token to begin with: sequence %llu",
                       (unsigned long long)prompt->seq);
    return nl_ids_add(&prompt->ids, &intake->generation.bos, 1, error);
}

void nl_prompt_free(struct nl_prompt *prompt)
{
    nl_json_free(prompt->header);
    nl_json_free(prompt->done);
    nl_ids_free(&prompt->ids);
    *prompt = (struct nl_prompt){0};
}

void nl_intake_close(struct nl_intake *intake)
{
    nl_engine_close(intake->engine);
    nl_generation_free(&intake->generation);
    nl_json_free(intake->upstream_failure);
    intake->upstream_failure = NULL;
    free(intake->folder);
    intake->engine = NULL;
    intake->folder = NULL;
}
