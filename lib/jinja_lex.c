/* Source to tokens, and how the parser takes them. The rules, their order and what they do to white space are
   those of jinja2/lexer.py. */
#include <math.h>
#include <stdlib.h>

#include "jinja_tree.h"
#include "unicode.h"

enum { MOST_BRACKETS = 200 };

struct lexer {
    struct jinja_compile *compile;
    const char *source;
    size_t size, at;
    uint32_t line;
    bool line_starting; /* nothing but a stripped tag stands before in this line */
    char brackets[MOST_BRACKETS];
    unsigned n_brackets;
};

static void add_token(struct lexer *lexer, int kind, uint32_t line, struct jv value)
{
    struct jinja_compile *compile = lexer->compile;
    if (compile->failed)
        return;
    if (nl_grow(&compile->tokens, &compile->capacity, compile->n_tokens + 1, sizeof *compile->tokens,
                "template", compile->error) != 0)
        compile->failed = true;
    else
        compile->tokens[compile->n_tokens++] = (struct jt){.kind = kind, .line = line, .value = value};
}

static void add_text(struct lexer *lexer, int kind, const char *text, size_t size)
{
    if (kind == JT_DATA && size == 0)
        return;
    char *copy = nl_jinja_compile_alloc(lexer->compile, size + 1);
    if (copy && size)
        memcpy(copy, text, size);
    add_token(lexer, kind, lexer->line, jv_string(copy, size));
}

/* Steps over `size` bytes, counting lines. */
static void advance(struct lexer *lexer, size_t size)
{
    for (size_t i = 0; i < size; i++)
        lexer->line += lexer->source[lexer->at + i] == '\n';
    lexer->at += size;
}

static int peek(const struct lexer *lexer, size_t ahead)
{
    return ahead < lexer->size - lexer->at ? (unsigned char)lexer->source[lexer->at + ahead] : -1;
}

/* How many bytes of white space begin `ahead` bytes from here. */
static size_t space_at(const struct lexer *lexer, size_t ahead)
{
    size_t at = lexer->at + ahead;
    unsigned size;
    for (; at < lexer->size && nl_jinja_is_space(nl_utf8_get(lexer->source + at, &size)); at += size)
        ;
    return at - lexer->at - ahead;
}

/* The text before a tag with its end stripped as the sign after the tag's first two characters asks. */
static size_t strip_before(const struct lexer *lexer, const char *text, size_t size, int sign, bool variable)
{
    size_t kept = size, line = size;
    if (sign == '+' || (sign != '-' && variable))
        return size;
    while (line > 0 && text[line - 1] != '\n')
        line--;
    while (kept > (sign == '-' ? 0 : line)) {
        size_t before = nl_utf8_back(text, kept);
        unsigned length;
        if (!nl_jinja_is_space(nl_utf8_get(text + before, &length)))
            break;
        kept = before;
    }
    if (sign == '-')
        return kept;
    return kept == line && (line > 0 || lexer->line_starting) ? line : size;
}

/* The end of a tag at this place: "%}" with its signs; 0 when it is none. `trims`: a newline after it goes.
 */
static size_t tag_end(const struct lexer *lexer, size_t ahead, const char *close, bool plus, bool trims)
{
    int sign = peek(lexer, ahead);
    bool minus = sign == '-';
    size_t at = ahead + (minus || (sign == '+' && plus));
    if (peek(lexer, at) != close[0] || peek(lexer, at + 1) != close[1])
        return 0;
    at += 2;
    if (minus)
        at += space_at(lexer, at);
    else if (at - ahead == 2 && trims && peek(lexer, at) == '\n')
        at++;
    return at - ahead;
}

static void end_tag(struct lexer *lexer, size_t size)
{
    advance(lexer, size);
    lexer->line_starting = lexer->source[lexer->at - 1] == '\n';
}

static void lex_comment(struct lexer *lexer)
{
    for (size_t ahead = 0; ahead < lexer->size - lexer->at; ahead++) {
        int c = peek(lexer, ahead);
        size_t size = c == '#' || c == '+' || c == '-' ? tag_end(lexer, ahead, "#}", true, true) : 0;
        if (size) {
            end_tag(lexer, ahead + size);
            return;
        }
    }
    if (lexer->at < lexer->size) /* jinja2 lets one that begins at the template's end pass */
        nl_jinja_refuse(lexer->compile, NL_DATA, lexer->line, "a comment has no end");
}

/* The size of a tag that holds just `word`: "{%- word -%}"; *sign gets what stands after "{%". */
static size_t word_tag(const struct lexer *lexer, size_t ahead, const char *word, bool plus, bool trims,
                       int *sign)
{
    size_t at = ahead + 2, size = strlen(word);
    *sign = peek(lexer, at);
    if (peek(lexer, ahead) != '{' || peek(lexer, ahead + 1) != '%')
        return 0;
    at += *sign == '-' || *sign == '+';
    at += space_at(lexer, at);
    if (size > lexer->size - lexer->at - at || memcmp(lexer->source + lexer->at + at, word, size) != 0)
        return 0;
    at += size;
    at += space_at(lexer, at);
    size_t end = tag_end(lexer, at, "%}", plus, trims);
    return end ? at + end - ahead : 0;
}

/* From behind {% raw %}. */
static void lex_raw(struct lexer *lexer)
{
    for (size_t ahead = 0; ahead < lexer->size - lexer->at; ahead++) {
        int sign;
        size_t size = word_tag(lexer, ahead, "endraw", true, true, &sign);
        if (!size)
            continue;
        const char *text = lexer->source + lexer->at;
        add_text(lexer, JT_DATA, text, strip_before(lexer, text, ahead, sign, false));
        end_tag(lexer, ahead + size);
        return;
    }
    if (lexer->at < lexer->size)
        nl_jinja_refuse(lexer->compile, NL_DATA, lexer->line, "a raw block has no end");
}

/* Digits with single underscores between, from `ahead`: how many bytes. */
static size_t digits_at(const struct lexer *lexer, size_t ahead, int base)
{
    size_t at = ahead;
    while (nl_jinja_digit(peek(lexer, at)) < base ||
           (at > ahead && peek(lexer, at) == '_' && nl_jinja_digit(peek(lexer, at + 1)) < base))
        at++;
    return at - ahead;
}

static size_t float_at(const struct lexer *lexer)
{
    size_t whole = digits_at(lexer, 0, 10), at = whole;
    if (whole == 0 || (lexer->at > 0 && lexer->source[lexer->at - 1] == '.'))
        return 0;
    size_t fraction = peek(lexer, at) == '.' ? digits_at(lexer, at + 1, 10) : 0;
    at += fraction ? fraction + 1 : 0;
    if ((peek(lexer, at) | 32) == 'e') {
        size_t sign = peek(lexer, at + 1) == '+' || peek(lexer, at + 1) == '-';
        size_t exponent = digits_at(lexer, at + 1 + sign, 10);
        if (exponent)
            return at + 1 + sign + exponent;
    }
    return fraction ? at : 0;
}

static void lex_number(struct lexer *lexer)
{
    size_t size = float_at(lexer);
    bool is_float = size > 0;
    int second = peek(lexer, 1) | 32;
    double number = 0;
    int64_t integer = 0;
    if (!is_float) /* after a zero only zeros */
        size = digits_at(lexer, 0, peek(lexer, 0) == '0' ? 1 : 10);
    struct jv text = jv_string(lexer->source + lexer->at, size);
    bool good = is_float ? nl_jv_parse_float(NULL, text, &number) && isfinite(number)
                         : nl_jv_parse_int(NULL, text, 10, &integer) == 1 &&
                               !(peek(lexer, 0) == '0' && (second == 'b' || second == 'o' || second == 'x'));
    if (!good)
        nl_jinja_refuse(lexer->compile, NL_UNSUPPORTED, lexer->line,
                        "a number that is too large, or not decimal");
    add_token(lexer, JT_NUMBER, lexer->line, is_float ? jv_float(number) : jv_int(integer));
    advance(lexer, size);
}

/* The escape at text[0] == '\\'; how many bytes it has, 0 when it is wrong or not supported. */
static size_t unescape(const char *text, size_t size, struct nl_buf *out)
{
    static const char plain[] = "\\'\"abfnrtv", meaning[] = "\\'\"\a\b\f\n\r\t\v";
    unsigned char c = size > 1 ? (unsigned char)text[1] : 0;
    const char *found = c ? strchr(plain, c) : NULL;
    size_t most = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    uint32_t point = 0;
    char utf8[4];
    if (found) {
        nl_buf_putc(out, meaning[found - plain]);
        return 2;
    }
    if (c == '\n')
        return 2;
    if (c == 0 || c >= 0x80 || c == 'N' || (c >= '0' && c <= '7'))
        return 0;
    if (most == 0) { /* no escape at all */
        nl_buf_putc(out, '\\');
        return 1;
    }
    for (size_t i = 2; i < 2 + most; i++) {
        int digit = i < size ? nl_jinja_digit(text[i]) : 99;
        if (digit >= 16)
            return 0;
        point = 16 * point + (uint32_t)digit;
    }
    if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
        return 0;
    nl_buf_add(out, utf8, nl_utf8_put(point, utf8));
    return 2 + most;
}

static void lex_string(struct lexer *lexer)
{
    const char *from = lexer->source + lexer->at;
    struct nl_buf text = {0};
    size_t end = 1, size = 1;
    while (peek(lexer, end) >= 0 && peek(lexer, end) != from[0])
        end += peek(lexer, end) == '\\' ? 2 : 1;
    if (peek(lexer, end) < 0) {
        nl_jinja_refuse(lexer->compile, NL_DATA, lexer->line, "a string has no end");
        return;
    }
    for (size_t at = 1; at < end && size; at += size) {
        size = from[at] == '\\' ? unescape(from + at, end - at, &text) : 1;
        if (from[at] != '\\')
            nl_buf_putc(&text, from[at]);
    }
    if (size == 0)
        nl_jinja_refuse(lexer->compile, NL_UNSUPPORTED, lexer->line,
                        "an escape in a string that is wrong or not supported");
    if (nl_buf_check(&text, "string", lexer->compile->error) != 0)
        lexer->compile->failed = true;
    add_text(lexer, JT_STRING, text.data, text.size);
    nl_buf_free(&text);
    advance(lexer, end + 1);
}

static void lex_operator(struct lexer *lexer)
{
    static const char *const doubles[] = {"//", "**", "==", "!=", ">=", "<="};
    struct jinja_compile *compile = lexer->compile;
    int c = peek(lexer, 0);
    for (int i = 0; i < (int)(sizeof doubles / sizeof *doubles); i++)
        if (c == doubles[i][0] && peek(lexer, 1) == doubles[i][1]) {
            lexer->at += 2;
            add_token(lexer, JT_FLOORDIV + i, lexer->line, jv_missing());
            return;
        }
    if (c == 0 || c >= 0x80 || !strchr("+-/*%~[](){}><=.:|,;", c))
        nl_jinja_refuse(compile, c < 0x80 ? NL_DATA : NL_UNSUPPORTED, lexer->line,
                        "unexpected character '%c'", c > ' ' && c < 0x7f ? c : '?');
    else if (strchr("({[", c) && lexer->n_brackets == MOST_BRACKETS)
        nl_jinja_refuse(compile, NL_UNSUPPORTED, lexer->line, "too many open brackets");
    else if (strchr("({[", c))
        lexer->brackets[lexer->n_brackets++] = (char)(c == '(' ? ')' : c + 2);
    else if (strchr(")}]", c) && (lexer->n_brackets == 0 || lexer->brackets[--lexer->n_brackets] != c))
        nl_jinja_refuse(compile, NL_DATA, lexer->line, "unexpected '%c'", c);
    lexer->at++;
    add_token(lexer, c, lexer->line, jv_missing());
}

static bool is_name(int c)
{
    return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z' && c < 0x80);
}

static void lex_name(struct lexer *lexer)
{
    size_t size = 0;
    while (is_name(peek(lexer, size)))
        size++;
    add_text(lexer, JT_NAME, lexer->source + lexer->at, size);
    lexer->at += size;
}

/* Inside a tag, up to and with its end. */
static void lex_tag(struct lexer *lexer, bool variable)
{
    uint32_t line = lexer->line;
    while (lexer->at < lexer->size && !lexer->compile->failed) {
        size_t end = lexer->n_brackets ? 0 : tag_end(lexer, 0, variable ? "}}" : "%}", !variable, !variable);
        size_t space = end ? 0 : space_at(lexer, 0);
        int c = peek(lexer, 0);
        if (end) {
            add_token(lexer, variable ? JT_VARIABLE_END : JT_BLOCK_END, lexer->line, jv_missing());
            end_tag(lexer, end);
            return;
        }
        if (space)
            advance(lexer, space);
        else if (c >= '0' && c <= '9')
            lex_number(lexer);
        else if (is_name(c))
            lex_name(lexer);
        else if (c == '\'' || c == '"')
            lex_string(lexer);
        else
            lex_operator(lexer);
    }
    nl_jinja_refuse(lexer->compile, NL_DATA, line, "a tag has no end");
}

/* The text up to the next tag, and the tag. */
static void lex_root(struct lexer *lexer)
{
    const char *text = lexer->source + lexer->at;
    size_t left = lexer->size - lexer->at, size = 0;
    while (size + 1 < left && !(text[size] == '{' && text[size + 1] && strchr("{%#", text[size + 1])))
        size++;
    if (size + 1 >= left) {
        add_text(lexer, JT_DATA, text, left);
        lexer->at = lexer->size;
        return;
    }
    char kind = text[size + 1];
    int sign = peek(lexer, size + 2), ignored;
    add_text(lexer, JT_DATA, text, strip_before(lexer, text, size, sign, kind == '{'));
    advance(lexer, size);
    size_t raw = kind == '%' ? word_tag(lexer, 0, "raw", false, false, &ignored) : 0;
    if (raw) {
        end_tag(lexer, raw);
        lex_raw(lexer);
        return;
    }
    lexer->at += 2 + (sign == '-' || sign == '+');
    if (kind == '#') {
        lex_comment(lexer);
        return;
    }
    add_token(lexer, kind == '{' ? JT_VARIABLE_BEGIN : JT_BLOCK_BEGIN, lexer->line, jv_missing());
    lex_tag(lexer, kind == '{');
}

/* Newlines of any kind become LF, and one at the end goes. */
static size_t normalize_newlines(char *text, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\r' && i + 1 < size && text[i + 1] == '\n')
            continue;
        text[n++] = text[i] == '\r' ? '\n' : text[i];
    }
    return n > 0 && text[n - 1] == '\n' ? n - 1 : n;
}

void nl_jinja_lex(struct jinja_compile *compile, const char *source, size_t length)
{
    size_t good = nl_utf8_check(source, length, NULL);
    char *text = malloc(length + 1);
    struct lexer lexer = {.compile = compile, .source = text, .line = 1, .line_starting = true};
    if (length > JINJA_MOST_SOURCE) {
        nl_jinja_refuse(compile, NL_UNSUPPORTED, 1, "a template of more than %d bytes", JINJA_MOST_SOURCE);
    } else if (good < length || !text) {
        compile->failed = true;
        if (text)
            nl_fail(compile->error, NL_DATA, "not UTF-8: %s: byte %zu", compile->template->name, good);
        else
            nl_fail_memory(compile->error, "template");
    } else {
        if (length)
            memcpy(text, source, length);
        lexer.size = normalize_newlines(text, length);
    }
    while (lexer.at < lexer.size && !compile->failed)
        lex_root(&lexer);
    add_token(&lexer, JT_END, lexer.line, jv_missing());
    free(text);
}

const struct jt *nl_jinja_current(const struct jinja_compile *compile)
{
    return &compile->tokens[compile->at];
}

int nl_jinja_kind_ahead(const struct jinja_compile *compile)
{
    return compile->tokens[compile->at + (compile->at + 1 < compile->n_tokens)].kind;
}

bool nl_jinja_at_name(const struct jinja_compile *compile, const char *name)
{
    const struct jt *token = nl_jinja_current(compile);
    return token->kind == JT_NAME && jv_text_is(token->value, name);
}

const struct jt *nl_jinja_take(struct jinja_compile *compile)
{
    const struct jt *token = nl_jinja_current(compile);
    if (token->kind != JT_END)
        compile->at++;
    return token;
}

bool nl_jinja_skip(struct jinja_compile *compile, int kind)
{
    bool there = nl_jinja_current(compile)->kind == kind;
    if (there)
        nl_jinja_take(compile);
    return there;
}

bool nl_jinja_skip_name(struct jinja_compile *compile, const char *name)
{
    bool there = nl_jinja_at_name(compile, name);
    if (there)
        nl_jinja_take(compile);
    return there;
}

void nl_jinja_refuse_token(struct jinja_compile *compile)
{
    static const char *const others[] = {"the end", "text",   "'{{'",     "'}}'",     "'{%'",
                                         "'%}'",    "a name", "a string", "a number", "'//'",
                                         "'**'",    "'=='",   "'!='",     "'>='",     "'<='"};
    const struct jt *token = nl_jinja_current(compile);
    if (token->kind == JT_NAME)
        nl_jinja_refuse(compile, NL_DATA, token->line, "unexpected '%.*s'", JINJA_SHOWN(token->value));
    else if (token->kind >= JT_END)
        nl_jinja_refuse(compile, NL_DATA, token->line, "unexpected %s", others[token->kind - JT_END]);
    else
        nl_jinja_refuse(compile, NL_DATA, token->line, "unexpected '%c'", token->kind);
}

const struct jt *nl_jinja_expect(struct jinja_compile *compile, int kind)
{
    if (nl_jinja_current(compile)->kind != kind)
        nl_jinja_refuse_token(compile);
    return nl_jinja_take(compile);
}

bool nl_jinja_deeper(struct jinja_compile *compile, uint32_t line)
{
    if (++compile->depth > JINJA_MOST_NESTING)
        nl_jinja_refuse(compile, NL_UNSUPPORTED, line, "tags or an expression nested too deeply");
    return !compile->failed;
}
