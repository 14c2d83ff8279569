/*
 * jinja-tool: for tests: renders templates.
 *
 *     jinja-tool < CASES
 *
 * Each line of the input is {"template": TEXT, "variables": {NAME: JSON AS TEXT, ...}}; the answer is a line
 * with the rendering as a JSON string, or {"code": STATUS, "error": MESSAGE}. strftime_now tells 2024-07-26
 * 12:34:56 UTC.
 */
#include <stdio.h>
#include <stdlib.h>

#include "jinja.h"
#include "json.h"

enum { NOW = 1721997296 };

static int set_variables(struct nl_jinja_run *run, const struct nl_json *variables, struct nl_error *error)
{
    for (const struct nl_json *v = nl_json_first(variables); v; v = nl_json_next(v)) {
        struct nl_buf text = {0};
        nl_json_copy_string(v, &text);
        int result = nl_buf_check(&text, "variable", error) != 0
                         ? -1
                         : nl_jinja_set_json(run, nl_json_key(v), text.data, text.size, error);
        nl_buf_free(&text);
        if (result != 0)
            return -1;
    }
    return 0;
}

static int render(const struct nl_json *item, struct nl_buf *out, struct nl_error *error)
{
    struct nl_buf source = {0};
    nl_json_copy_string(nl_json_get(item, "template"), &source);
    struct nl_jinja *template = nl_jinja_open(source.data, source.size, "template", error);
    struct nl_jinja_run *run = template ? nl_jinja_run_open(error) : NULL;
    int result = -1;
    if (run) {
        nl_jinja_set_now(run, NOW);
        result = set_variables(run, nl_json_get(item, "variables"), error);
        if (result == 0)
            result = nl_jinja_render(run, template, out, error);
    }
    nl_jinja_run_close(run);
    nl_jinja_close(template);
    nl_buf_free(&source);
    return result;
}

int main(void)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;
    setenv("TZ", "UTC", 1);
    while ((length = getline(&line, &capacity, stdin)) > 0) {
        struct nl_error error = {0};
        struct nl_buf made = {0}, answer = {0};
        struct nl_json *item = nl_json_parse(line, (size_t)length, "case", &error);
        if (!item || !nl_json_is(nl_json_get(item, "template"), NL_JSON_STRING))
            return 1;
        if (render(item, &made, &error) == 0) {
            nl_json_quote(&answer, made.data ? made.data : "", made.size);
        } else {
            nl_buf_printf(&answer, "{\"code\":%d,\"error\":", error.code);
            nl_json_quote(&answer, error.message, strlen(error.message));
            nl_buf_putc(&answer, '}');
        }
        puts(answer.data);
        nl_buf_free(&made);
        nl_buf_free(&answer);
        nl_json_free(item);
    }
    free(line);
    return 0;
}
