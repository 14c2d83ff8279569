/* Oniguruma's syntax into PCRE2's: groups, repeats, escapes. */
#include "regex_syntax.h"

#include <ctype.h>

#include "regex.h"
#include "unicode.h"

enum {
    DEEPEST_GROUP = 200,
    LARGEST_REPEAT = 65535, /* PCRE2's */
};

struct group {
    size_t begin;  /* in *out */
    bool caseless; /* what held outside */
    bool implied;  /* (?i) opened it: the end of the group around it closes it */
};

struct translator {
    struct nl_regex_source source;
    struct nl_buf *out;
    size_t atom;               /* where in *out the last atom begins, NO_ATOM when nothing can be repeated */
    bool repeated;             /* the atom ends in a repeat already */
    uint32_t before, previous; /* the caseless character just before, 0 when there is none */
    size_t depth;
    struct group groups[DEEPEST_GROUP]; /* the open ones */
};
static const size_t NO_ATOM = SIZE_MAX;

int nl_regex_refuse(const struct nl_regex_source *source, const char *why)
{
    return nl_fail(source->error, NL_UNSUPPORTED, "regex not supported (%s at byte %zu): %.*s", why,
                   source->at, source->length > 500 ? 500 : (int)source->length, source->text);
}

uint32_t nl_regex_take(struct nl_regex_source *source)
{
    unsigned size;
    uint32_t c = nl_utf8_get(source->text + source->at, &size);
    source->at += size;
    return c;
}

bool nl_regex_accept(struct nl_regex_source *source, const char *string)
{
    size_t length = strlen(string);
    if (source->length - source->at < length || memcmp(source->text + source->at, string, length) != 0)
        return false;
    source->at += length;
    return true;
}

static int hex(struct nl_regex_source *source, unsigned least, unsigned most, uint32_t *value)
{
    *value = 0;
    unsigned digits = 0;
    for (; digits < most && source->at < source->length; digits++) {
        char c = source->text[source->at];
        if (c >= '0' && c <= '9')
            *value = *value * 16 + (uint32_t)(c - '0');
        else if ((c | 32) >= 'a' && (c | 32) <= 'f')
            *value = *value * 16 + (uint32_t)((c | 32) - 'a' + 10);
        else
            break;
        source->at++;
    }
    if (digits < least || *value >= NL_CODE_POINTS || (*value >= 0xd800 && *value < 0xe000))
        return nl_regex_refuse(source, "a bad character number");
    return 1;
}

int nl_regex_escape(struct nl_regex_source *source, uint32_t *c)
{
    static const char letters[] = "tnrfvae", values[] = "\t\n\r\f\v\a\x1b";
    if (source->at == source->length)
        return nl_regex_refuse(source, "a backslash at the end");
    if (nl_regex_accept(source, "x{"))
        return hex(source, 1, 6, c) == 1 && nl_regex_accept(source, "}")
                   ? 1
                   : nl_regex_refuse(source, "a bad character number");
    if (nl_regex_accept(source, "u"))
        return hex(source, 4, 4, c);
    if (nl_regex_accept(source, "x")) {
        if (hex(source, 1, 2, c) != 1)
            return -1;
        return *c < 0x80 ? 1 : nl_regex_refuse(source, "a byte that is no character");
    }
    char first = source->text[source->at];
    const char *letter = first ? strchr(letters, first) : NULL;
    if (letter) {
        source->at++;
        *c = (unsigned char)values[letter - letters];
        return 1;
    }
    if ((first >= '0' && first <= '9') || ((first | 32) >= 'a' && (first | 32) <= 'z'))
        return 0;
    *c = nl_regex_take(source); /* punctuation, or a character that needed no escape */
    return 1;
}

static void begin_atom(struct translator *t)
{
    t->atom = t->out->size;
    t->repeated = false;
}

static void put_character(struct nl_buf *out, uint32_t c)
{
    if (c < 0x80 && ((c | 32) - 'a' < 26 || c - '0' < 10 || c == ' ' || c == '\'' || c == '_'))
        nl_buf_putc(out, (char)c);
    else
        nl_buf_printf(out, "\\x{%x}", (unsigned)c);
}

/* \b as look-arounds over \w of our tables. */
static int word_boundary(struct translator *t, bool negated)
{
    struct nl_buf word = {0};
    struct nl_regex_source w = t->source;
    w.text = "w";
    w.length = 1;
    w.at = 0;
    struct nl_regex_property property;
    int result =
        nl_regex_escaped_property(&w, &property) == 1 && nl_regex_print_property(&w, &property, &word) == 0
            ? nl_buf_check(&word, "regex", t->source.error)
            : -1;
    if (result == 0)
        nl_buf_printf(t->out, "(?:(?<=%s)(?%c%s)|(?<!%s)(?%c%s))", word.data, negated ? '=' : '!', word.data,
                      word.data, negated ? '!' : '=', word.data);
    nl_buf_free(&word);
    return result;
}

/* Oniguruma's caseless matching lets characters meet sequences: \u00df and ss. PCRE2's does not. */
bool nl_regex_folds_to_many(uint32_t c)
{
    static const struct {
        uint16_t first, last;
    } many[] = {{0xdf, 0xdf},     {0x130, 0x130},   {0x149, 0x149},   {0x1f0, 0x1f0},   {0x2bc, 0x2bc},
                {0x2be, 0x2be},   {0x300, 0x36f},   {0x390, 0x390},   {0x3b0, 0x3b0},   {0x565, 0x587},
                {0x1e96, 0x1e9a}, {0x1e9e, 0x1e9e}, {0x1f50, 0x1ffc}, {0xfb00, 0xfb06}, {0xfb13, 0xfb17}};
    for (size_t i = 0; i < sizeof many / sizeof *many; i++)
        if (c >= many[i].first && c <= many[i].last)
            return true;
    return false;
}

/* The sequences of two ASCII letters that one character folds to. */
static bool pair_folds_to_one(uint32_t a, uint32_t b)
{
    a |= 32;
    b |= 32;
    return (a == 's' && (b == 's' || b == 't')) || (a == 'f' && (b == 'f' || b == 'i' || b == 'l'));
}

static int literal(struct translator *t, uint32_t c)
{
    if (t->source.caseless && (nl_regex_folds_to_many(c) || pair_folds_to_one(t->previous, c)))
        return nl_regex_refuse(&t->source, "caseless, and one character may be several");
    put_character(t->out, c);
    t->before = t->source.caseless ? c : 0;
    return 0;
}

/* Behind a backslash outside a class. */
static int escape(struct translator *t)
{
    struct nl_regex_property property;
    uint32_t c;
    begin_atom(t);
    if (nl_regex_accept(&t->source, "R")) { /* a line break */
        nl_buf_puts(t->out, "(?>\\x{d}\\x{a}|[\\x{a}-\\x{d}\\x{85}\\x{2028}\\x{2029}])");
        return 0;
    }
    if (nl_regex_accept(&t->source, "N") || nl_regex_accept(&t->source, "O")) {
        nl_buf_puts(t->out, t->source.text[t->source.at - 1] == 'N' ? "[^\\x{a}]" : "(?s:.)");
        return 0;
    }
    for (unsigned i = 0; i < 3; i++) {
        static const char *const anchors[] = {"A", "z", "Z"};
        if (nl_regex_accept(&t->source, anchors[i])) {
            nl_buf_printf(t->out, "\\%s", anchors[i]);
            t->atom = NO_ATOM;
            return 0;
        }
    }
    if (nl_regex_accept(&t->source, "b") || nl_regex_accept(&t->source, "B")) {
        t->atom = NO_ATOM;
        return word_boundary(t, t->source.text[t->source.at - 1] == 'B');
    }
    int got = nl_regex_escaped_property(&t->source, &property);
    if (got != 0)
        return got < 0 ? -1 : nl_regex_print_property(&t->source, &property, t->out);
    got = nl_regex_escape(&t->source, &c);
    if (got == 0)
        return nl_regex_refuse(&t->source, "unknown escape");
    return got < 0 ? -1 : literal(t, c);
}

/* Behind "(?": the letters i, m, -, up to ':' or ')'. Oniguruma's m is PCRE2's s. Without a group of their
   own they hold to the end of the group around, alternatives and all: a(?i)b|c is a(?i:b|c). */
static int options(struct translator *t)
{
    bool on = true;
    nl_buf_puts(t->out, "(?");
    while (t->source.at < t->source.length) {
        char c = (char)nl_regex_take(&t->source);
        if (c == 'i' || c == '-') {
            nl_buf_putc(t->out, c);
            on = on && c != '-';
            t->source.caseless = c == 'i' ? on : t->source.caseless;
        } else if (c == 'm') {
            nl_buf_putc(t->out, 's');
        } else if (c == ':' || c == ')') {
            nl_buf_putc(t->out, ':');
            t->groups[t->depth - 1].implied = c == ')';
            return 0;
        } else {
            break;
        }
    }
    return nl_regex_refuse(&t->source, "unknown group");
}

/* Behind "(?<" or "(?'": a name, which nothing here looks at. 1, or 0 when it is none. */
static int group_name(struct nl_regex_source *source, char end)
{
    size_t at = source->at;
    while (at < source->length && (source->text[at] == '_' || isalnum((unsigned char)source->text[at])))
        at++;
    if (at == source->at || at == source->length || source->text[at] != end ||
        isdigit((unsigned char)source->text[source->at]))
        return 0;
    source->at = at + 1;
    return 1;
}

/* Behind "(?#": to the next ')'. */
static int skip_comment(struct nl_regex_source *source)
{
    while (source->at < source->length) {
        uint32_t c = nl_regex_take(source);
        if (c == ')')
            return 0;
        if (c == '\\' && source->at < source->length)
            nl_regex_take(source);
    }
    return nl_regex_refuse(source, "a comment without its end");
}

/* Behind '('. */
static int open_group(struct translator *t)
{
    static const char *const same[] = {"?:", "?=", "?!", "?<=", "?<!", "?>"};
    if (nl_regex_accept(&t->source, "?#"))
        return skip_comment(&t->source);
    if (t->depth == DEEPEST_GROUP)
        return nl_regex_refuse(&t->source, "groups nested too deeply");
    t->groups[t->depth++] = (struct group){t->out->size, t->source.caseless, false};
    t->atom = NO_ATOM;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (nl_regex_accept(&t->source, same[i])) {
            nl_buf_printf(t->out, "(%s", same[i]);
            return 0;
        }
    if (nl_regex_accept(&t->source, "?<")) {
        if (!group_name(&t->source, '>'))
            return nl_regex_refuse(&t->source, "unknown group");
    } else if (nl_regex_accept(&t->source, "?")) {
        return options(t);
    }
    nl_buf_puts(t->out, "(?:"); /* nothing here looks at what a group matched */
    return 0;
}

static void close_one(struct translator *t)
{
    t->depth--;
    t->atom = t->groups[t->depth].begin;
    t->source.caseless = t->groups[t->depth].caseless;
    t->repeated = false;
    nl_buf_putc(t->out, ')');
}

static void close_implied(struct translator *t)
{
    while (t->depth > 0 && t->groups[t->depth - 1].implied)
        close_one(t);
}

static int close_group(struct translator *t)
{
    close_implied(t);
    if (t->depth == 0)
        return nl_regex_refuse(&t->source, "a parenthesis too many");
    close_one(t);
    return 0;
}

/* At '{': an interval, else the brace is a character like any other (0). */
static int interval(struct nl_regex_source *source, long *low, long *high)
{
    struct nl_regex_source s = *source;
    long limit[2] = {-1, -1};
    s.at++;
    for (unsigned i = 0; i < 2; i++) {
        while (s.at < s.length && s.text[s.at] >= '0' && s.text[s.at] <= '9') {
            limit[i] = (limit[i] < 0 ? 0 : limit[i]) * 10 + (s.text[s.at++] - '0');
            if (limit[i] > LARGEST_REPEAT)
                return nl_regex_refuse(source, "too many repeats");
        }
        if (i == 0 && !nl_regex_accept(&s, ",")) {
            limit[1] = limit[0];
            break;
        }
        if (i == 1 && limit[1] < 0 && limit[0] >= 0)
            limit[1] = LARGEST_REPEAT + 1; /* {n,} */
    }
    if (!nl_regex_accept(&s, "}") || limit[1] < 0)
        return 0;
    *low = limit[0] < 0 ? 0 : limit[0];
    *high = limit[1];
    if (*low > *high)
        return nl_regex_refuse(source, "an interval upside down");
    source->at = s.at;
    return 1;
}

/* Makes a group of the last atom, so that a further repeat takes all of it. */
static int wrap_atom(struct translator *t)
{
    if (!nl_buf_reserve(t->out, 4))
        return nl_fail_memory(t->source.error, "regex");
    memmove(t->out->data + t->atom + 3, t->out->data + t->atom, t->out->size - t->atom);
    memcpy(t->out->data + t->atom, "(?:", 3);
    t->out->size += 3;
    nl_buf_putc(t->out, ')');
    return 0;
}

static int repeat(struct translator *t, long low, long high, bool is_interval)
{
    if (t->atom == NO_ATOM)
        return nl_regex_refuse(&t->source, "nothing to repeat");
    if (t->repeated && wrap_atom(t) != 0)
        return -1;
    t->repeated = true;
    if (!is_interval) {
        nl_buf_putc(t->out, (char)low);
        if (nl_regex_accept(&t->source, "?"))
            nl_buf_putc(t->out, '?');
        else if (nl_regex_accept(&t->source, "+"))
            nl_buf_putc(t->out, '+');
        return 0;
    }
    if (high > LARGEST_REPEAT)
        nl_buf_printf(t->out, "{%ld,}", low);
    else
        nl_buf_printf(t->out, "{%ld,%ld}", low, high);
    /* {n}? is an option and {n,m}+ a repeat, which the next round makes of them; only {n,m}? is a lazy one.
     */
    if (low != high && nl_regex_accept(&t->source, "?"))
        nl_buf_putc(t->out, '?');
    return 0;
}

static int step(struct translator *t)
{
    char next = t->source.text[t->source.at];
    long low = 0, high = 0;
    t->previous = t->before;
    if (next != '(' && next != ')') /* (?:s)s is ss */
        t->before = 0;
    if (next == '{') {
        int got = interval(&t->source, &low, &high);
        if (got != 0)
            return got < 0 ? -1 : repeat(t, low, high, true);
    }
    uint32_t c = nl_regex_take(&t->source);
    switch (c) {
    case '*':
    case '+':
    case '?':
        return repeat(t, (long)c, 0, false);
    case '\\':
        return escape(t);
    case '[':
        begin_atom(t);
        return nl_regex_class(&t->source, t->out);
    case '(':
        return open_group(t);
    case ')':
        return close_group(t);
    case '|':
    case '^':
    case '$':
        t->atom = NO_ATOM;
        nl_buf_putc(t->out, (char)c);
        return 0;
    default:
        begin_atom(t);
        if (c == '.')
            nl_buf_putc(t->out, '.');
        else
            return literal(t, c);
        return 0;
    }
}

int nl_regex_translate(const char *pattern, size_t length, bool native, struct nl_buf *out,
                       struct nl_error *error)
{
    struct translator t = {
        .source = {.text = pattern, .length = length, .native = native, .error = error},
        .out = out,
        .atom = NO_ATOM,
    };
    while (t.source.at < length)
        if (step(&t) != 0)
            return -1;
    close_implied(&t);
    if (t.depth > 0)
        return nl_regex_refuse(&t.source, "a parenthesis without its end");
    nl_buf_add(out, "", 0);
    return nl_buf_check(out, "regex", error);
}
