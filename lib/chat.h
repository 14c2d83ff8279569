/*
 * chat.h: conversations to text, by the chat template of a checkpoint, as transformers' apply_chat_template
 * does.
 *
 * The template is FOLDER/chat_template.jinja, or where there are tools
 * FOLDER/additional_chat_templates/tool_use.jinja; where there is neither file, `chat_template` of
 * FOLDER/tokenizer_config.json: a text, or a list of {"name", "template"}, of which "tool_use" is taken where
 * there are tools, else "default". It sees the special tokens of
 * tokenizer_config.json (bos_token, eos_token, unk_token, sep_token, pad_token, cls_token, mask_token),
 * messages, tools, documents (none where they are not given) and add_generation_prompt.
 */
#ifndef NL_CHAT_H
#define NL_CHAT_H

#include "buf.h"

struct nl_chat;

enum nl_chat_input {
    NL_CHAT_EITHER, /* JSON where the first character is [ or {, else text */
    NL_CHAT_JSON,   /* an array of messages, or {"messages": [...], "tools": [...], further variables} */
    NL_CHAT_TEXT,   /* one message of the user */
};
struct nl_chat_options {
    enum nl_chat_input input;
    const char *system; /* UTF-8, a message before the user's text, which is then never JSON; or NULL */
    bool no_prompt;     /* leave out what opens the assistant's answer */
};

/* NULL and *error: no template at all, NL_UNSUPPORTED; a damaged configuration, NL_DATA. What is wrong with a
   template shows when it is rendered. */
struct nl_chat *nl_chat_open(const char *folder, struct nl_error *error);
void nl_chat_close(struct nl_chat *); /* NULL is fine */

/* Appends the rendering of `length` bytes of UTF-8; `name` is what messages call them. It has its special
   tokens in it: encode it without those of the tokenizer's own template. Not from two threads at once. */
int nl_chat_render(struct nl_chat *, const struct nl_chat_options *, const char *text, size_t length,
                   const char *name, struct nl_buf *out, struct nl_error *error);

#endif
