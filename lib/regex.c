#define PCRE2_CODE_UNIT_WIDTH 8
#include "regex.h"

#include <pcre2.h>
#include <stdlib.h>

enum {
    FIRST_STACK = 64 << 10,
    /* Reserved, touched as needed; beyond it the interpreter, which uses the heap, goes on. */
    LARGEST_STACK = 64 << 20,
};

struct nl_regex {
    pcre2_code *code;
    bool jit;
};

struct nl_regex_scratch {
    pcre2_match_data *match;
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

/* PCRE2's tables are usable where they are of a Unicode between 14 and 16: a character that was assigned
   keeps its category but for U+1171E (Mn, then Mc), which regex_syntax.c knows. */
static bool tables_are_near(void)
{
    char version[64] = "";
    if (pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, NULL) > (int)sizeof version)
        return false;
    pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, version);
    long major = strtol(version, NULL, 10);
    return major >= 14 && major <= 16;
}

struct nl_regex *nl_regex_compile(const char *pattern, size_t length, struct nl_error *error)
{
    struct nl_buf translated = {0};
    struct nl_regex *regex = calloc(1, sizeof *regex);
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (!regex || !context) {
        nl_fail_memory(error, "regex");
        goto fail;
    }
    if (nl_regex_translate(pattern, length, tables_are_near(), &translated, error) != 0)
        goto fail;
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    int code;
    PCRE2_SIZE offset;
    regex->code = pcre2_compile((PCRE2_SPTR)translated.data, translated.size,
                                PCRE2_UTF | PCRE2_MULTILINE | PCRE2_NO_UTF_CHECK, &code, &offset, context);
    if (!regex->code) {
        char reason[200];
        pcre2_get_error_message(code, (PCRE2_UCHAR *)reason, sizeof reason);
        nl_fail(error, NL_UNSUPPORTED, "regex not supported (%s): %.*s", reason,
                length > 500 ? 500 : (int)length, pattern);
        goto fail;
    }
    regex->jit = pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE) == 0;
    pcre2_compile_context_free(context);
    nl_buf_free(&translated);
    return regex;
fail:
    pcre2_compile_context_free(context);
    nl_buf_free(&translated);
    nl_regex_free(regex);
    return NULL;
}

void nl_regex_free(struct nl_regex *regex)
{
    if (!regex)
        return;
    pcre2_code_free(regex->code);
    free(regex);
}

struct nl_regex_scratch *nl_regex_scratch_new(struct nl_error *error)
{
    struct nl_regex_scratch *scratch = calloc(1, sizeof *scratch);
    if (scratch) {
        scratch->match = pcre2_match_data_create(1, NULL);
        scratch->context = pcre2_match_context_create(NULL);
        scratch->stack =
            pcre2_jit_stack_create(FIRST_STACK, LARGEST_STACK, NULL); /* NULL where there is no JIT */
    }
    if (!scratch || !scratch->match || !scratch->context) {
        nl_regex_scratch_free(scratch);
        nl_fail_memory(error, "regex");
        return NULL;
    }
    pcre2_set_depth_limit(scratch->context, UINT32_MAX);
    if (scratch->stack)
        pcre2_jit_stack_assign(scratch->context, NULL, scratch->stack);
    return scratch;
}

void nl_regex_scratch_free(struct nl_regex_scratch *scratch)
{
    if (!scratch)
        return;
    pcre2_match_data_free(scratch->match);
    pcre2_match_context_free(scratch->context);
    pcre2_jit_stack_free(scratch->stack);
    free(scratch);
}

/* Far more than a regex that goes back over each character some times, and soon over for one that takes
 * 2^length. */
static uint32_t steps(size_t length)
{
    enum { LEAST = 10000000, A_BYTE = 64 };
    return length < (UINT32_MAX - LEAST) / A_BYTE ? LEAST + A_BYTE * (uint32_t)length : UINT32_MAX;
}

int nl_regex_search(const struct nl_regex *regex, struct nl_regex_scratch *scratch, const char *text,
                    size_t length, size_t from, size_t *begin, size_t *end, struct nl_error *error)
{
    PCRE2_SPTR subject = (PCRE2_SPTR)text;
    int got = PCRE2_ERROR_JIT_STACKLIMIT;
    pcre2_set_match_limit(scratch->context, steps(length - from));
    if (regex->jit)
        got = pcre2_jit_match(regex->code, subject, length, from, 0, scratch->match, scratch->context);
    if (got == PCRE2_ERROR_JIT_STACKLIMIT)
        got = pcre2_match(regex->code, subject, length, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                          scratch->match, scratch->context);
    if (got == PCRE2_ERROR_NOMATCH)
        return 0;
    if (got == PCRE2_ERROR_MATCHLIMIT)
        return nl_fail(error, NL_DATA, "the regex takes too many steps on this text: byte %zu", from);
    if (got < 0) {
        char reason[200];
        pcre2_get_error_message(got, (PCRE2_UCHAR *)reason, sizeof reason);
        return nl_fail(error, NL_RESOURCE, "regex matching failed at byte %zu: %s", from, reason);
    }
    const PCRE2_SIZE *match = pcre2_get_ovector_pointer(scratch->match);
    *begin = match[0];
    *end = match[1];
    return 1;
}
