/* Source to tokens. The rules, their order and what they do to white space are those of jinja2/lexer.py. */
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

static const char operators[] = "+-/*%~[](){}><=.:|,;"; /* from JT_ADD on */

static int add_token(struct lexer *lexer, enum jt_kind kind, uint32_t line, struct jv value)
{
    struct jinja_compile *compile = lexer->compile;
    if (nl_grow(&compile->tokens, &compile->capacity, compile->n_tokens + 1, sizeof *compile->tokens,
                "template", compile->error) != 0)
        return -1;
    compile->tokens[compile->n_tokens++] = (struct jt){.kind = kind, .line = line, .value = value};
    return 0;
}

static int add_plain(struct lexer *lexer, enum jt_kind kind, uint32_t line)
{
    return add_token(lexer, kind, line, (struct jv){0});
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
    while (at < lexer->size) {
        unsigned size;
        if (!nl_jinja_is_space(nl_utf8_get(lexer->source + at, &size)))
            break;
        at += size;
    }
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

static int add_data(struct lexer *lexer, const char *text, size_t size)
{
    if (size == 0)
        return 0;
    char *copy = nl_jinja_compile_alloc(lexer->compile, size);
    if (!copy)
        return -1;
    memcpy(copy, text, size);
    return add_token(lexer, JT_DATA, lexer->line, jv_string(copy, size));
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

static int lex_comment(struct lexer *lexer)
{
    uint32_t line = lexer->line;
    for (size_t ahead = 0; ahead < lexer->size - lexer->at; ahead++) {
        int c = peek(lexer, ahead);
        size_t size = c == '#' || c == '+' || c == '-' ? tag_end(lexer, ahead, "#}", true, true) : 0;
        if (size) {
            end_tag(lexer, ahead + size);
            return 0;
        }
    }
    return nl_jinja_compile_error(lexer->compile, NL_DATA, line, "a comment has no end");
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
static int lex_raw(struct lexer *lexer)
{
    uint32_t line = lexer->line;
    for (size_t ahead = 0; ahead < lexer->size - lexer->at; ahead++) {
        int sign;
        size_t size = word_tag(lexer, ahead, "endraw", true, true, &sign);
        if (!size)
            continue;
        const char *text = lexer->source + lexer->at;
        if (add_data(lexer, text, strip_before(lexer, text, ahead, sign, false)) != 0)
            return -1;
        end_tag(lexer, ahead + size);
        return 0;
    }
    return nl_jinja_compile_error(lexer->compile, NL_DATA, line, "a raw block has no end");
}

static bool is_digit_of(int c, int base)
{
    int digit = c >= '0' && c <= '9'                 ? c - '0'
                : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                     : 99;
    return digit < base;
}

/* Digits with single underscores between, from `ahead`: how many bytes. */
static size_t digits_at(const struct lexer *lexer, size_t ahead, int base)
{
    size_t at = ahead;
    while (is_digit_of(peek(lexer, at), base) ||
           (at > ahead && peek(lexer, at) == '_' && is_digit_of(peek(lexer, at + 1), base)))
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

static size_t integer_at(const struct lexer *lexer, int *base)
{
    int first = peek(lexer, 0), second = peek(lexer, 1) | 32;
    *base = 10;
    if (first != '0')
        return digits_at(lexer, 0, 10);
    int prefix = second == 'b' ? 2 : second == 'o' ? 8 : second == 'x' ? 16 : 0;
    size_t skip = prefix && peek(lexer, 2) == '_' ? 3 : 2;
    size_t digits = prefix ? digits_at(lexer, skip, prefix) : 0;
    if (digits) {
        *base = prefix;
        return skip + digits;
    }
    return digits_at(lexer, 0, 1); /* zeros */
}

static int lex_number(struct lexer *lexer)
{
    int base = 10;
    size_t size = float_at(lexer);
    bool is_float = size > 0;
    if (!is_float)
        size = integer_at(lexer, &base);
    struct nl_buf digits = {0};
    for (size_t i = base == 10 ? 0 : 2; i < size; i++)
        if (peek(lexer, i) != '_')
            nl_buf_putc(&digits, (char)peek(lexer, i));
    int result = nl_buf_check(&digits, "number", lexer->compile->error);
    struct jv value = jv_string(digits.data, digits.size);
    if (result == 0 && is_float) {
        double number = 0;
        nl_jv_parse_float(value, &number);
        result = add_token(lexer, JT_FLOAT, lexer->line, jv_float(number));
    } else if (result == 0) {
        int64_t integer = 0;
        if (nl_jv_parse_int(NULL, value, base, &integer) == 1)
            result = add_token(lexer, JT_INTEGER, lexer->line, jv_int(integer));
        else
            result = nl_jinja_compile_error(lexer->compile, NL_UNSUPPORTED, lexer->line,
                                            "an integer of more than 64 bits");
    }
    nl_buf_free(&digits);
    advance(lexer, size);
    return result;
}

/* The escape at text[0] == '\\'; how many bytes it has, 0 when it is wrong or not supported. */
static size_t unescape(const char *text, size_t size, struct nl_buf *out)
{
    static const char plain[] = "\\'\"abfnrtv", meaning[] = "\\'\"\a\b\f\n\r\t\v";
    unsigned char c = size > 1 ? (unsigned char)text[1] : 0;
    const char *found = c ? strchr(plain, c) : NULL;
    if (found) {
        nl_buf_putc(out, meaning[found - plain]);
        return 2;
    }
    if (c == '\n')
        return 2;
    if (c >=
        0x80) { /* Python sees the escaped spelling of the character there, its backslash being escaped */
        unsigned length;
        uint32_t point = nl_utf8_get(text + 1, &length);
        nl_buf_printf(out,
                      point < 0x100     ? "\\x%02x"
                      : point < 0x10000 ? "\\u%04x"
                                        : "\\U%08x",
                      (unsigned)point);
        return 1 + length;
    }
    int base = c == 'x' || c == 'u' || c == 'U' ? 16 : 8;
    size_t first = base == 16 ? 2 : 1, most = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 3, n = 0;
    uint32_t point = 0;
    while (n < most && first + n < size && is_digit_of((unsigned char)text[first + n], base)) {
        char digit[2] = {text[first + n++], 0};
        point = point * (uint32_t)base + (uint32_t)strtoul(digit, NULL, 16);
    }
    if (base == 8 && n == 0 && c != 'N') {
        nl_buf_putc(out, '\\'); /* no escape at all */
        return 1;
    }
    if (n == 0 || (base == 16 && n < most) || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
        return 0;
    char utf8[4];
    nl_buf_add(out, utf8, nl_utf8_put(point, utf8));
    return first + n;
}

static int lex_string(struct lexer *lexer)
{
    char quote = lexer->source[lexer->at];
    size_t end = 1;
    while (peek(lexer, end) >= 0 && peek(lexer, end) != quote)
        end += peek(lexer, end) == '\\' ? 2 : 1;
    if (peek(lexer, end) < 0)
        return nl_jinja_compile_error(lexer->compile, NL_DATA, lexer->line, "a string has no end");
    struct nl_buf text = {0};
    const char *from = lexer->source + lexer->at;
    size_t at = 1, size = 1;
    while (at < end && size) {
        size = from[at] == '\\' ? unescape(from + at, end - at, &text) : 1;
        if (from[at] != '\\')
            nl_buf_putc(&text, from[at]);
        at += size;
    }
    int result = nl_buf_check(&text, "string", lexer->compile->error);
    if (result == 0 && size == 0)
        result = nl_jinja_compile_error(lexer->compile, NL_UNSUPPORTED, lexer->line,
                                        "an escape in a string that is wrong or not supported");
    char *copy = result == 0 ? nl_jinja_compile_alloc(lexer->compile, text.size + 1) : NULL;
    if (copy && text.size)
        memcpy(copy, text.data, text.size);
    if (copy)
        result = add_token(lexer, JT_STRING, lexer->line, jv_string(copy, text.size));
    nl_buf_free(&text);
    advance(lexer, end + 1);
    return copy ? result : -1;
}

static int lex_operator(struct lexer *lexer)
{
    static const char *const doubles[] = {"//", "**", "==", "!=", ">=", "<="};
    char c = lexer->source[lexer->at];
    for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++)
        if (c == doubles[i][0] && peek(lexer, 1) == doubles[i][1]) {
            lexer->at += 2;
            return add_plain(lexer, (enum jt_kind)(JT_FLOORDIV + i), lexer->line);
        }
    const char *found = c ? strchr(operators, c) : NULL;
    if (!found)
        return nl_jinja_compile_error(lexer->compile, (unsigned char)c < 0x80 ? NL_DATA : NL_UNSUPPORTED,
                                      lexer->line, "unexpected character '%c'",
                                      (unsigned char)c < 0x80 ? c : '?');
    if (strchr("({[", c)) {
        if (lexer->n_brackets == MOST_BRACKETS)
            return nl_jinja_compile_error(lexer->compile, NL_UNSUPPORTED, lexer->line,
                                          "too many open brackets");
        lexer->brackets[lexer->n_brackets++] = c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (strchr(")}]", c) && (lexer->n_brackets == 0 || lexer->brackets[--lexer->n_brackets] != c)) {
        return nl_jinja_compile_error(lexer->compile, NL_DATA, lexer->line, "unexpected '%c'", c);
    }
    lexer->at++;
    return add_plain(lexer, (enum jt_kind)(JT_ADD + (found - operators)), lexer->line);
}

static bool is_name(int c)
{
    return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z' && c < 0x80);
}

static int lex_name(struct lexer *lexer)
{
    size_t size = 0;
    while (is_name(peek(lexer, size)))
        size++;
    char *copy = nl_jinja_compile_alloc(lexer->compile, size);
    if (!copy)
        return -1;
    memcpy(copy, lexer->source + lexer->at, size);
    lexer->at += size;
    return add_token(lexer, JT_NAME, lexer->line, jv_string(copy, size));
}

/* Inside a tag, up to and with its end. */
static int lex_tag(struct lexer *lexer, bool variable)
{
    uint32_t line = lexer->line;
    int result = 0;
    while (result == 0 && lexer->at < lexer->size) {
        size_t end = lexer->n_brackets ? 0 : tag_end(lexer, 0, variable ? "}}" : "%}", !variable, !variable);
        size_t space = end ? 0 : space_at(lexer, 0);
        int c = peek(lexer, 0);
        if (end) {
            result = add_plain(lexer, variable ? JT_VARIABLE_END : JT_BLOCK_END, lexer->line);
            end_tag(lexer, end);
            return result;
        }
        if (space)
            advance(lexer, space);
        else if (c >= '0' && c <= '9')
            result = lex_number(lexer);
        else if (is_name(c))
            result = lex_name(lexer);
        else if (c == '\'' || c == '"')
            result = lex_string(lexer);
        else
            result = lex_operator(lexer);
    }
    return result != 0 ? -1 : nl_jinja_compile_error(lexer->compile, NL_DATA, line, "a tag has no end");
}

/* The text up to the next tag, and the tag. */
static int lex_root(struct lexer *lexer)
{
    const char *text = lexer->source + lexer->at;
    size_t left = lexer->size - lexer->at, size = 0;
    while (size + 1 < left && !(text[size] == '{' && text[size + 1] && strchr("{%#", text[size + 1])))
        size++;
    if (size + 1 >= left) {
        int result = add_data(lexer, text, left);
        advance(lexer, left);
        return result;
    }
    char kind = text[size + 1];
    int sign = peek(lexer, size + 2), ignored;
    if (add_data(lexer, text, strip_before(lexer, text, size, sign, kind == '{')) != 0)
        return -1;
    advance(lexer, size);
    size_t raw = kind == '%' ? word_tag(lexer, 0, "raw", false, false, &ignored) : 0;
    if (raw) {
        end_tag(lexer, raw);
        return lex_raw(lexer);
    }
    uint32_t line = lexer->line;
    lexer->at += 2 + (sign == '-' || sign == '+');
    if (kind == '#')
        return lex_comment(lexer);
    if (add_plain(lexer, kind == '{' ? JT_VARIABLE_BEGIN : JT_BLOCK_BEGIN, line) != 0)
        return -1;
    return lex_tag(lexer, kind == '{');
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

int nl_jinja_lex(struct jinja_compile *compile, const char *source, size_t length)
{
    if (length > JINJA_MOST_SOURCE)
        return nl_jinja_compile_error(compile, NL_UNSUPPORTED, 1, "a template of more than %d bytes",
                                      JINJA_MOST_SOURCE);
    size_t good = nl_utf8_check(source, length, NULL);
    if (good < length)
        return nl_fail(compile->error, NL_DATA, "not UTF-8: %s: byte %zu", compile->template->name, good);
    char *text = malloc(length + 1);
    if (!text)
        return nl_fail_memory(compile->error, "template");
    if (length)
        memcpy(text, source, length);
    struct lexer lexer = {.compile = compile, .source = text, .line = 1, .line_starting = true};
    lexer.size = normalize_newlines(text, length);
    int result = 0;
    while (result == 0 && lexer.at < lexer.size)
        result = lex_root(&lexer);
    if (result == 0)
        result = add_plain(&lexer, JT_END, lexer.line);
    free(text);
    return result;
}
