#include "chat.h"

#include <stdlib.h>

#include "file.h"
#include "jinja_value.h"
#include "json.h"

enum { MOST_CONFIG = 64 << 20 };

static const char *const token_names[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                          "pad_token", "cls_token", "mask_token"};
enum { TOKENS = sizeof token_names / sizeof *token_names };

struct source {
    struct nl_buf text, name;
    bool there;
    struct nl_jinja *template; /* compiled when it is needed */
};

struct nl_chat {
    struct nl_buf tokens[TOKENS]; /* no data: there is none */
    struct source plain, with_tools;
};

static void free_source(struct source *source)
{
    nl_buf_free(&source->text);
    nl_buf_free(&source->name);
    nl_jinja_close(source->template);
}

void nl_chat_close(struct nl_chat *chat)
{
    if (!chat)
        return;
    for (size_t i = 0; i < TOKENS; i++)
        nl_buf_free(&chat->tokens[i]);
    free_source(&chat->plain);
    free_source(&chat->with_tools);
    free(chat);
}

/* FOLDER/NAME if it is there. */
static int load_file(struct source *source, const char *folder, const char *name, struct nl_error *error)
{
    char *path = nl_path_join(folder, name, error);
    if (!path)
        return -1;
    int result = 0;
    if (nl_path_exists(path)) {
        nl_buf_clear(&source->text);
        nl_buf_clear(&source->name);
        nl_buf_puts(&source->name, path);
        source->there = true;
        result = nl_file_read(path, JINJA_MOST_SOURCE, &source->text, error);
    }
    free(path);
    return result != 0 ? -1 : nl_buf_check(&source->name, "path", error);
}

static void take_text(struct source *source, const struct nl_json *text, const char *folder, const char *what)
{
    nl_json_copy_string(text, &source->text);
    nl_buf_printf(&source->name, "%s/tokenizer_config.json, chat_template%s%s", folder, what[0] ? " " : "",
                  what);
    source->there = true;
}

/* A text, or a list of {"name", "template"}. */
static int load_templates(struct nl_chat *chat, const struct nl_json *value, const char *folder,
                          struct nl_error *error)
{
    if (nl_json_is(value, NL_JSON_STRING)) {
        take_text(&chat->plain, value, folder, "");
        return 0;
    }
    if (!nl_json_is(value, NL_JSON_ARRAY))
        return nl_fail(error, NL_DATA, "chat_template is neither a text nor a list: %s/tokenizer_config.json",
                       folder);
    for (const struct nl_json *item = nl_json_first(value); item; item = nl_json_next(item)) {
        const char *name = nl_json_get_string(item, "name");
        const struct nl_json *text = nl_json_get(item, "template");
        if (!name || !nl_json_is(text, NL_JSON_STRING))
            return nl_fail(error, NL_DATA,
                           "chat_template has an item without name or template: "
                           "%s/tokenizer_config.json",
                           folder);
        struct source *source = strcmp(name, "default") == 0    ? &chat->plain
                                : strcmp(name, "tool_use") == 0 ? &chat->with_tools
                                                                : NULL;
        if (source && !source->there)
            take_text(source, text, folder, name);
    }
    return 0;
}

/* A token is a text, or an object with it. */
static void load_token(struct nl_buf *out, const struct nl_json *value)
{
    const struct nl_json *text = nl_json_is(value, NL_JSON_OBJECT) ? nl_json_get(value, "content") : value;
    if (!nl_json_is(text, NL_JSON_STRING))
        return;
    nl_buf_clear(out);
    nl_buf_add(out, "", 0);
    nl_json_copy_string(text, out);
}

static int load_tokens(struct nl_chat *chat, const struct nl_json *config, struct nl_error *error)
{
    for (size_t i = 0; i < TOKENS; i++) {
        load_token(&chat->tokens[i], nl_json_get(config, token_names[i]));
        if (nl_buf_check(&chat->tokens[i], "special token", error) != 0)
            return -1;
    }
    return 0;
}

/* Old checkpoints: read where tokenizer_config.json does not list the added tokens, as transformers does. */
static int load_special_tokens_map(struct nl_chat *chat, const char *folder, struct nl_error *error)
{
    char *path = nl_path_join(folder, "special_tokens_map.json", error);
    if (!path)
        return -1;
    int result = 0;
    if (nl_path_exists(path)) {
        struct nl_json *map = nl_json_load(path, error);
        result = map ? load_tokens(chat, map, error) : -1;
        nl_json_free(map);
    }
    free(path);
    return result;
}

static int load_config(struct nl_chat *chat, const char *folder, struct nl_error *error)
{
    char *path = nl_path_join(folder, "tokenizer_config.json", error);
    if (!path)
        return -1;
    struct nl_json *config = NULL;
    int result = 0;
    if (nl_path_exists(path)) {
        config = nl_json_load(path, error);
        result = config ? load_tokens(chat, config, error) : -1;
    }
    const struct nl_json *template = nl_json_get(config, "chat_template");
    if (result == 0 && !nl_json_get(config, "added_tokens_decoder"))
        result = load_special_tokens_map(chat, folder, error);
    if (result == 0 && template && !nl_json_is(template, NL_JSON_NULL) && !chat->plain.there &&
        !chat->with_tools.there)
        result = load_templates(chat, template, folder, error);
    nl_json_free(config);
    free(path);
    return result;
}

struct nl_chat *nl_chat_open(const char *folder, struct nl_error *error)
{
    struct nl_chat *chat = calloc(1, sizeof *chat);
    if (!chat) {
        nl_fail_memory(error, "chat template");
        return NULL;
    }
    if (load_file(&chat->plain, folder, "chat_template.jinja", error) != 0 ||
        load_file(&chat->with_tools, folder, "additional_chat_templates/tool_use.jinja", error) != 0 ||
        load_config(chat, folder, error) != 0) {
        nl_chat_close(chat);
        return NULL;
    }
    if (!chat->plain.there && !chat->with_tools.there) {
        nl_set_error(error, NL_UNSUPPORTED, "the model has no chat template: %s", folder);
        nl_chat_close(chat);
        return NULL;
    }
    return chat;
}

static void refuse(struct nl_jinja_run *run, const char *what, const char *name)
{
    if (!run->failed)
        nl_set_error(run->error, NL_DATA, "%s: %s", what, name);
    run->failed = true;
}

/* A message without its members that are null. A reasoning has three names in the wild; templates read the
   first or the second. */
static struct jv normalize_message(struct nl_jinja_run *run, const struct jv_dict *message)
{
    static const char *const names[] = {"reasoning_content", "thinking", "reasoning"};
    struct jv_dict *kept = nl_jv_dict_new(run);
    struct jv reasoning = {0};
    for (size_t i = 0; i < 3 && !jv_is_given(reasoning); i++)
        nl_jv_dict_get(run, message, jv_chars(names[i]), &reasoning);
    if (jv_is_given(reasoning))
        nl_jv_dict_set(run, kept, jv_chars("thinking"), reasoning);
    for (size_t i = 0; i < message->count && !run->failed; i++)
        if (!jv_is(message->entries[i].value, JV_NONE))
            nl_jv_dict_set(run, kept, message->entries[i].key, message->entries[i].value);
    if (jv_is_given(reasoning))
        nl_jv_dict_set(run, kept, jv_chars("reasoning_content"), reasoning);
    return jv_of_dict(kept);
}

static void set_messages(struct nl_jinja_run *run, struct jv messages, const char *name)
{
    const struct jv_list *list = jv_is(messages, JV_LIST) ? messages.list : NULL;
    if (!list)
        refuse(run, "no array of messages", name);
    else if (list->count == 0)
        refuse(run, "a conversation without messages", name);
    for (size_t i = 0; list && i < list->count && !run->failed; i++) {
        if (!jv_is(list->items[i], JV_DICT))
            refuse(run, "a message that is not an object", name);
        else
            list->items[i] = normalize_message(run, list->items[i].dict);
    }
    nl_jv_dict_set(run, run->variables, jv_chars("messages"), messages);
}

static void add_message(struct nl_jinja_run *run, struct jv_list *messages, const char *role,
                        struct jv content)
{
    struct jv_dict *message = nl_jv_dict_new(run);
    nl_jv_dict_set(run, message, jv_chars("role"), jv_chars(role));
    nl_jv_dict_set(run, message, jv_chars("content"), content);
    nl_jv_push(run, messages, jv_of_dict(message));
}

/* Also behind a byte order mark, so that this is told of. */
static bool looks_like_json(const char *text, size_t length)
{
    size_t at = length > 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (at < length && strchr(" \t\r\n", text[at]) && text[at])
        at++;
    return at < length && (text[at] == '[' || text[at] == '{');
}

static void check_objects(struct nl_jinja_run *run, struct jv value, const char *name)
{
    if (!jv_is(value, JV_NONE) && !jv_is(value, JV_LIST))
        refuse(run, "tools or documents that are not an array", name);
    for (size_t n = 0; jv_is(value, JV_LIST) && n < value.list->count; n++)
        if (!jv_is(value.list->items[n], JV_DICT))
            refuse(run, "a tool or document that is not an object", name);
}

/* What the input holds besides the messages. */
static void set_others(struct nl_jinja_run *run, const struct jv_dict *object, const char *name)
{
    for (size_t i = 0; i < object->count && !run->failed; i++) {
        struct jv key = object->entries[i].key, value = object->entries[i].value;
        if (nl_jinja_is_listed(key, "tools documents"))
            check_objects(run, value, name);
        /* no variables, but arguments of apply_chat_template, which change the text */
        if (nl_jinja_is_listed(key, "chat_template continue_final_message") && nl_jv_truth(run, value))
            nl_jinja_fail(run, NL_UNSUPPORTED, "'%.*s' in a conversation", JINJA_SHOWN(key));
        if (!jv_text_is(key, "messages"))
            nl_jv_dict_set(run, run->variables, key, value);
    }
}

/* The conversation, and what comes with it, as variables. */
static void read_input(struct nl_jinja_run *run, const struct nl_chat_options *options, struct jv text,
                       const char *name)
{
    bool json = options->input == NL_CHAT_JSON || (options->input == NL_CHAT_EITHER && !options->system &&
                                                   looks_like_json(text.text, text.size));
    struct jv messages = {0};
    if (json) {
        messages = nl_jv_parse_json(run, text.text, text.size, name);
    } else {
        messages = jv_of_list(nl_jv_list_new(run, 2), JV_LIST);
        if (options->system)
            add_message(run, messages.list, "system", jv_chars(options->system));
        add_message(run, messages.list, "user", text);
    }
    if (jv_is(messages, JV_DICT)) {
        const struct jv_dict *object = messages.dict;
        messages = (struct jv){0};
        set_others(run, object, name);
        nl_jv_dict_get(run, object, jv_chars("messages"), &messages);
    }
    set_messages(run, messages, name);
}

static void set_variables(struct nl_chat *chat, struct nl_jinja_run *run,
                          const struct nl_chat_options *options)
{
    for (size_t i = 0; i < TOKENS; i++)
        if (chat->tokens[i].data)
            nl_jv_dict_set(run, run->variables, jv_chars(token_names[i]),
                           jv_string(chat->tokens[i].data, chat->tokens[i].size));
    nl_jv_dict_set(run, run->variables, jv_chars("tools"), jv_none());
    nl_jv_dict_set(run, run->variables, jv_chars("documents"), jv_none());
    nl_jv_dict_set(run, run->variables, jv_chars("add_generation_prompt"), jv_bool(!options->no_prompt));
}

/* The template for these variables, compiled; owned by the chat. */
static const struct nl_jinja *choose(struct nl_chat *chat, struct nl_jinja_run *run, struct nl_error *error)
{
    struct jv tools = jv_none();
    nl_jv_dict_get(run, run->variables, jv_chars("tools"), &tools);
    struct source *source =
        !jv_is(tools, JV_NONE) && chat->with_tools.there ? &chat->with_tools : &chat->plain;
    if (!source->there) {
        nl_set_error(error, NL_UNSUPPORTED, "a chat template for tools, and none without: %s",
                     chat->with_tools.name.data);
        return NULL;
    }
    if (!source->template)
        source->template = nl_jinja_open(source->text.data, source->text.size, source->name.data, error);
    return source->template;
}

int nl_chat_render(struct nl_chat *chat, const struct nl_chat_options *options, const char *text,
                   size_t length, const char *name, struct nl_buf *out, struct nl_error *error)
{
    struct nl_jinja_run *run = nl_jinja_run_open(error);
    if (!run)
        return -1;
    set_variables(chat, run, options);
    struct jv input = nl_jv_copy(run, text, length);
    if (!run->failed)
        read_input(run, options, input, name);
    const struct nl_jinja *template = run->failed ? NULL : choose(chat, run, error);
    int result = template ? nl_jinja_render(run, template, out, error) : -1;
    nl_jinja_run_close(run);
    return result;
}
