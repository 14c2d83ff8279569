/* Classes and properties of the regexes. */
#include <stdlib.h>

#include "charset.h"
#include "regex_syntax.h"
#include "unicode.h"

#define BIT(name)   (1u << NL_CAT_##name)
#define LETTERS     (BIT(LU) | BIT(LL) | BIT(LT) | BIT(LM) | BIT(LO))
#define MARKS       (BIT(MN) | BIT(MC) | BIT(ME))
#define NUMBERS     (BIT(ND) | BIT(NL) | BIT(NO))
#define PUNCTUATION (BIT(PC) | BIT(PD) | BIT(PE) | BIT(PF) | BIT(PI) | BIT(PO) | BIT(PS))
#define SYMBOLS     (BIT(SC) | BIT(SK) | BIT(SM) | BIT(SO))
#define SEPARATORS  (BIT(ZS) | BIT(ZL) | BIT(ZP))
#define OTHERS      (BIT(CC) | BIT(CF) | BIT(CN) | BIT(CO) | BIT(CS))
#define WHITE_SPACE SEPARATORS, false, false, "\\x{9}-\\x{d}\\x{85}"

enum { DEEPEST_CLASS = 50 };

static const struct {
    const char *name; /* lower case, without blanks, '-' and '_' */
    struct nl_regex_property property;
} properties[] = {
    {"l", {LETTERS, .native = "\\p{L}"}},
    {"letter", {LETTERS, .native = "\\p{L}"}},
    {"lu", {BIT(LU), .native = "\\p{Lu}"}},
    {"uppercaseletter", {BIT(LU), .native = "\\p{Lu}"}},
    {"ll", {BIT(LL), .native = "\\p{Ll}"}},
    {"lowercaseletter", {BIT(LL), .native = "\\p{Ll}"}},
    {"lt", {BIT(LT), .native = "\\p{Lt}"}},
    {"titlecaseletter", {BIT(LT), .native = "\\p{Lt}"}},
    {"lm", {BIT(LM), .native = "\\p{Lm}"}},
    {"modifierletter", {BIT(LM), .native = "\\p{Lm}"}},
    {"lo", {BIT(LO), .native = "\\p{Lo}"}},
    {"otherletter", {BIT(LO), .native = "\\p{Lo}"}},
    {"lc", {BIT(LU) | BIT(LL) | BIT(LT), .native = "\\p{Lu}\\p{Ll}\\p{Lt}"}},
    {"casedletter", {BIT(LU) | BIT(LL) | BIT(LT), .native = "\\p{Lu}\\p{Ll}\\p{Lt}"}},
    {"m", {MARKS, .native = "\\p{M}"}},
    {"mark", {MARKS, .native = "\\p{M}"}},
    {"combiningmark", {MARKS, .native = "\\p{M}"}},
    {"mn", {BIT(MN), .native = NULL}}, /* U+1171E was Mn in Unicode 14 and is Mc in 16 */
    {"nonspacingmark", {BIT(MN), .native = NULL}},
    {"mc", {BIT(MC), .native = NULL}},
    {"spacingmark", {BIT(MC), .native = NULL}},
    {"me", {BIT(ME), .native = "\\p{Me}"}},
    {"enclosingmark", {BIT(ME), .native = "\\p{Me}"}},
    {"n", {NUMBERS, .native = "\\p{N}"}},
    {"number", {NUMBERS, .native = "\\p{N}"}},
    {"nd", {BIT(ND), .native = "\\p{Nd}"}},
    {"decimalnumber", {BIT(ND), .native = "\\p{Nd}"}},
    {"digit", {BIT(ND), .native = "\\p{Nd}"}},
    {"nl", {BIT(NL), .native = "\\p{Nl}"}},
    {"letternumber", {BIT(NL), .native = "\\p{Nl}"}},
    {"no", {BIT(NO), .native = "\\p{No}"}},
    {"othernumber", {BIT(NO), .native = "\\p{No}"}},
    {"p", {PUNCTUATION, .native = "\\p{P}"}},
    {"punctuation", {PUNCTUATION, .native = "\\p{P}"}},
    {"punct", {PUNCTUATION, .native = "\\p{P}"}},
    {":punct", {PUNCTUATION | SYMBOLS, .native = "\\p{P}\\p{S}"}}, /* [:punct:] is more than \\p{Punct} */
    {"pc", {BIT(PC), .native = "\\p{Pc}"}},
    {"connectorpunctuation", {BIT(PC), .native = "\\p{Pc}"}},
    {"pd", {BIT(PD), .native = "\\p{Pd}"}},
    {"dashpunctuation", {BIT(PD), .native = "\\p{Pd}"}},
    {"ps", {BIT(PS), .native = "\\p{Ps}"}},
    {"openpunctuation", {BIT(PS), .native = "\\p{Ps}"}},
    {"pe", {BIT(PE), .native = "\\p{Pe}"}},
    {"closepunctuation", {BIT(PE), .native = "\\p{Pe}"}},
    {"pi", {BIT(PI), .native = "\\p{Pi}"}},
    {"initialpunctuation", {BIT(PI), .native = "\\p{Pi}"}},
    {"pf", {BIT(PF), .native = "\\p{Pf}"}},
    {"finalpunctuation", {BIT(PF), .native = "\\p{Pf}"}},
    {"po", {BIT(PO), .native = "\\p{Po}"}},
    {"otherpunctuation", {BIT(PO), .native = "\\p{Po}"}},
    {"s", {SYMBOLS, .native = "\\p{S}"}},
    {"symbol", {SYMBOLS, .native = "\\p{S}"}},
    {"sc", {BIT(SC), .native = "\\p{Sc}"}},
    {"currencysymbol", {BIT(SC), .native = "\\p{Sc}"}},
    {"sk", {BIT(SK), .native = "\\p{Sk}"}},
    {"modifiersymbol", {BIT(SK), .native = "\\p{Sk}"}},
    {"sm", {BIT(SM), .native = "\\p{Sm}"}},
    {"mathsymbol", {BIT(SM), .native = "\\p{Sm}"}},
    {"so", {BIT(SO), .native = "\\p{So}"}},
    {"othersymbol", {BIT(SO), .native = "\\p{So}"}},
    {"z", {SEPARATORS, .native = "\\p{Z}"}},
    {"separator", {SEPARATORS, .native = "\\p{Z}"}},
    {"zs", {BIT(ZS), .native = "\\p{Zs}"}},
    {"spaceseparator", {BIT(ZS), .native = "\\p{Zs}"}},
    {"zl", {BIT(ZL), .native = "\\p{Zl}"}},
    {"lineseparator", {BIT(ZL), .native = "\\p{Zl}"}},
    {"zp", {BIT(ZP), .native = "\\p{Zp}"}},
    {"paragraphseparator", {BIT(ZP), .native = "\\p{Zp}"}},
    {"c", {OTHERS, .native = NULL}},
    {"other", {OTHERS, .native = NULL}},
    {"cc", {BIT(CC), .native = "\\p{Cc}"}},
    {"control", {BIT(CC), .native = "\\p{Cc}"}},
    {"cf", {BIT(CF), .native = "\\p{Cf}"}},
    {"format", {BIT(CF), .native = "\\p{Cf}"}},
    {"cn", {BIT(CN), .native = NULL}},
    {"unassigned", {BIT(CN), .native = NULL}},
    {"co", {BIT(CO), .native = "\\p{Co}"}},
    {"privateuse", {BIT(CO), .native = "\\p{Co}"}},
    {"any", {UINT32_MAX, .native = NULL}},
    {"ascii", {0, .extra = "\\x{0}-\\x{7f}", .native = ""}},
    {"alphabetic", {0, .alphabetic = true}},
    {"alpha", {0, .alphabetic = true}},
    {"alnum", {BIT(ND), .alphabetic = true}},
    /* Oniguruma counts the superscripts and fractions of Latin-1 in, but not in a class. */
    {"word",
     {MARKS | BIT(ND) | BIT(PC), .alphabetic = true, .extra = "\\x{b2}-\\x{b3}\\x{b9}\\x{bc}-\\x{be}"}},
    {"whitespace", {WHITE_SPACE, .native = "\\p{Z}"}},
    {"space", {WHITE_SPACE, .native = "\\p{Z}"}},
    {"xdigit", {0, .extra = "0-9A-Fa-f", .native = ""}},
};

/* Of ASCII, whatever the locale. */
static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool find_property(const char *name, struct nl_regex_property *property)
{
    for (size_t i = 0; i < sizeof properties / sizeof *properties; i++)
        if (strcmp(name, properties[i].name) == 0) {
            *property = properties[i].property;
            return true;
        }
    *property = (struct nl_regex_property){0};
    property->ranges = nl_unicode_find_set(name, &property->n_ranges);
    return property->ranges;
}

/* By its name, behind "\\p{" or "[:", up to the terminator, which is taken. */
static int named_property(struct nl_regex_source *source, const char *terminator,
                          struct nl_regex_property *property)
{
    char name[64];
    size_t length = 1;
    bool negated = nl_regex_accept(source, "^"), found = false;
    name[0] = ':';
    while (source->at < source->length && !(found = nl_regex_accept(source, terminator))) {
        uint32_t c = nl_regex_take(source);
        if (c == ' ' || c == '_' || c == '-')
            continue;
        if (c >= 0x80 || length + 1 == sizeof name)
            return nl_regex_refuse(source, "unknown character property");
        name[length++] = lower((char)c);
    }
    name[length] = '\0';
    bool bracket = terminator[0] == ':';
    if (!found || (!(bracket && find_property(name, property)) && !find_property(name + 1, property)))
        return nl_regex_refuse(source, "unknown character property");
    property->negated = negated;
    return 0;
}

int nl_regex_escaped_property(struct nl_regex_source *source, struct nl_regex_property *property)
{
    static const struct {
        char letter, name[12];
    } letters[] = {{'s', "space"}, {'d', "digit"}, {'w', "word"}, {'h', "xdigit"}};
    if (source->at == source->length)
        return 0;
    char c = source->text[source->at];
    if ((c == 'p' || c == 'P') && source->at + 1 < source->length && source->text[source->at + 1] == '{') {
        source->at += 2;
        if (named_property(source, "}", property) != 0)
            return -1;
        property->negated ^= c == 'P';
        return 1;
    }
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (lower(c) == letters[i].letter && find_property(letters[i].name, property)) {
            source->at++;
            property->negated = c != letters[i].letter;
            return 1;
        }
    return 0;
}

static bool in_categories(const struct nl_regex_property *property, uint32_t c)
{
    return property->categories >> nl_unicode_category(c) & 1;
}

/* Appends the (not negated) property's members with PCRE2's own properties, adding what those do not know. */
static void print_native(const struct nl_regex_property *property, struct nl_buf *out)
{
    nl_buf_puts(out, property->native);
    if (property->extra)
        nl_buf_puts(out, property->extra);
    uint32_t first, last;
    for (size_t i = 0; property->categories && nl_unicode_newer_range(i, &first, &last); i++)
        for (uint32_t c = first; c <= last; c++) {
            uint32_t start = c;
            while (c <= last && in_categories(property, c))
                c++;
            if (c > start)
                nl_buf_printf(out, "\\x{%x}-\\x{%x}", (unsigned)start, (unsigned)c - 1);
        }
}

/* What `extra` says: single characters, \x{...}, and ranges of them. */
static void add_extra(struct nl_charset *set, const char *extra)
{
    while (extra && *extra) {
        uint32_t limit[2];
        for (unsigned i = 0; i < 2; i++) {
            char *end;
            if (extra[0] == '\\') {
                limit[i] = (uint32_t)strtoul(extra + 3, &end, 16);
                extra = end + 1;
            } else {
                limit[i] = (unsigned char)*extra++;
            }
            if (i == 0 && *extra == '-')
                extra++;
            else if (i == 0) {
                limit[1] = limit[0];
                break;
            }
        }
        nl_charset_add_range(set, limit[0], limit[1]);
    }
}

static int add_property(struct nl_charset *set, const struct nl_regex_property *property,
                        struct nl_error *error)
{
    struct nl_charset *members = nl_charset_new(error);
    if (!members)
        return -1;
    nl_charset_add_categories(members, property->categories, property->alphabetic);
    for (size_t i = 0; i < property->n_ranges; i++)
        nl_charset_add_range(members, property->ranges[i].first, property->ranges[i].last);
    add_extra(members, property->extra);
    if (property->negated)
        nl_charset_complement(members);
    nl_charset_union(set, members);
    free(members);
    return 0;
}

/* [ranges], [^ranges], right for no range at all too. */
static void print_class(const struct nl_charset *set, bool negated, struct nl_buf *out)
{
    struct nl_buf ranges = {0};
    nl_charset_print(set, &ranges);
    if (ranges.failed)
        out->failed = true;
    if (ranges.size == 0)
        nl_buf_puts(out, negated ? "[\\x{0}-\\x{10ffff}]" : "[^\\x{0}-\\x{10ffff}]");
    else
        nl_buf_printf(out, "[%s%s]", negated ? "^" : "", ranges.data);
    nl_buf_free(&ranges);
}

static int print_property(struct nl_regex_source *source, const struct nl_regex_property *property,
                          struct nl_buf *out)
{
    if (source->native && property->native) {
        nl_buf_puts(out, property->negated ? "[^" : "[");
        print_native(property, out);
        nl_buf_puts(out, "]");
        return 0;
    }
    struct nl_regex_property positive = *property;
    positive.negated = false;
    struct nl_charset *set = nl_charset_new(source->error);
    if (!set)
        return -1;
    int result = add_property(set, &positive, source->error);
    if (result == 0)
        print_class(set, property->negated, out);
    free(set);
    return result;
}

/* A property outside a class does not fold case. */
int nl_regex_print_property(struct nl_regex_source *source, const struct nl_regex_property *property,
                            struct nl_buf *out)
{
    if (!source->caseless)
        return print_property(source, property, out);
    nl_buf_puts(out, "(?-i:");
    int result = print_property(source, property, out);
    nl_buf_puts(out, ")");
    return result;
}

struct item {
    enum { CHARACTERS, PROPERTY, NESTED, INTERSECTION, END } kind;
    uint32_t first, last; /* CHARACTERS */
    struct nl_regex_property property;
};

/* One character of a class, escaped or not; 1, or 0 when something else is next. */
static int class_character(struct nl_regex_source *source, uint32_t *c)
{
    if (source->at == source->length)
        return nl_regex_refuse(source, "a class without its end");
    if (source->text[source->at] != '\\') {
        *c = nl_regex_take(source);
        return 1;
    }
    size_t start = source->at++;
    if (nl_regex_accept(source, "b")) { /* a backspace in classes only */
        *c = '\b';
        return 1;
    }
    int got = nl_regex_escape(source, c);
    if (got == 0)
        source->at = start;
    return got;
}

static int class_item(struct nl_regex_source *source, bool first, struct item *item)
{
    *item = (struct item){.kind = END};
    if (!first && nl_regex_accept(source, "]"))
        return 0;
    if (nl_regex_accept(source, "&&")) {
        item->kind = INTERSECTION;
        return 0;
    }
    if (nl_regex_accept(source, "[:")) {
        item->kind = PROPERTY;
        int result = named_property(source, ":]", &item->property);
        if (item->property.alphabetic)
            item->property.extra = NULL;
        return result;
    }
    if (nl_regex_accept(source, "[")) {
        item->kind = NESTED;
        return 0;
    }
    int got = class_character(source, &item->first);
    if (got < 0)
        return -1;
    if (got == 0) {
        source->at++; /* the backslash */
        item->kind = PROPERTY;
        got = nl_regex_escaped_property(source, &item->property);
        if (item->property.alphabetic) /* in a class \w is without its extras */
            item->property.extra = NULL;
        return got == 1 ? 0 : got < 0 ? -1 : nl_regex_refuse(source, "unknown escape in a class");
    }
    item->kind = CHARACTERS;
    item->last = item->first;
    const char *rest = source->text + source->at;
    if (source->length - source->at < 2 || rest[0] != '-' || rest[1] == ']')
        return 0;
    source->at++;
    if (class_character(source, &item->last) != 1 || item->last < item->first)
        return nl_regex_refuse(source, "a bad range in a class");
    return 0;
}

/* The members of a class whose '[' was taken, by the way that can do everything. */
static int class_members(struct nl_regex_source *source, struct nl_charset *set, bool *negated,
                         unsigned depth)
{
    if (depth > DEEPEST_CLASS)
        return nl_regex_refuse(source, "classes nested too deeply");
    *negated = nl_regex_accept(source, "^");
    struct nl_charset *inner = nl_charset_new(source->error), *left = NULL;
    struct item item = {.kind = CHARACTERS};
    int result = inner ? 0 : -1;
    for (bool first = true; result == 0 && item.kind != END; first = false) {
        bool inner_negated;
        if ((result = class_item(source, first, &item)) != 0)
            break;
        if (item.kind == CHARACTERS) {
            nl_charset_add_range(set, item.first, item.last);
        } else if (item.kind == PROPERTY) {
            result = add_property(set, &item.property, source->error);
        } else if (item.kind == NESTED) {
            memset(inner, 0, sizeof *inner);
            result = class_members(source, inner, &inner_negated, depth + 1);
            if (result == 0 && inner_negated)
                nl_charset_complement(inner);
            nl_charset_union(set, inner);
        } else { /* && or the end: what stands left of it is complete */
            if (left)
                nl_charset_intersect(set, left);
            if (item.kind == INTERSECTION) {
                if (!left && !(left = nl_charset_new(source->error)))
                    result = -1;
                else
                    memcpy(left, set, sizeof *left);
                memset(set, 0, sizeof *set);
            }
        }
    }
    free(inner);
    free(left);
    return result;
}

/* Tries to write the class item by item; 0 when it holds something that needs the other way. */
static int plain_class(struct nl_regex_source *source, struct nl_buf *out)
{
    nl_buf_puts(out, nl_regex_accept(source, "^") ? "[^" : "[");
    for (bool first = true;; first = false) {
        struct item item;
        if (class_item(source, first, &item) != 0)
            return -1;
        if (item.kind == END)
            break;
        if (item.kind == CHARACTERS && (!source->caseless || item.last < 0x80))
            nl_buf_printf(out, "\\x{%x}-\\x{%x}", (unsigned)item.first, (unsigned)item.last);
        else if (item.kind == PROPERTY && !item.property.negated && item.property.native && source->native &&
                 !source->caseless)
            print_native(&item.property, out);
        else
            return 0;
    }
    nl_buf_puts(out, "]");
    return 1;
}

/* Letters of two cases since Unicode 15 and 16, of which PCRE2 may not know. */
static void close_over_newer_cases(struct nl_charset *set)
{
    static const struct {
        uint32_t upper, lower, count;
    } pairs[] = {{0x1c89, 0x1c8a, 1}, {0xa7cb, 0x264, 1}, {0xa7cc, 0xa7cd, 1},
                 {0xa7da, 0xa7db, 1}, {0xa7dc, 0x19b, 1}, {0x10d50, 0x10d70, 22}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (uint32_t n = 0; n < pairs[i].count; n++) {
            uint32_t upper = pairs[i].upper + n, lower = pairs[i].lower + n;
            if ((set->bits[upper / 64] >> upper % 64 & 1) || (set->bits[lower / 64] >> lower % 64 & 1)) {
                nl_charset_add_range(set, upper, upper);
                nl_charset_add_range(set, lower, lower);
            }
        }
}

/* A caseless class takes sequences for what it holds (unless it is negated). */
static int check_folding(struct nl_regex_source *source, const struct nl_charset *set, bool negated)
{
    for (uint32_t c = 0; source->caseless && !negated && c < NL_CODE_POINTS; c++)
        if ((set->bits[c / 64] >> c % 64 & 1) && nl_regex_folds_to_many(c))
            return nl_regex_refuse(source, "caseless, and one character may be several");
    return 0;
}

int nl_regex_class(struct nl_regex_source *source, struct nl_buf *out)
{
    size_t start = source->at, mark = out->size;
    int got = plain_class(source, out);
    if (got != 0)
        return got < 0 ? -1 : 0;
    source->at = start;
    out->size = mark;
    struct nl_charset *set = nl_charset_new(source->error);
    bool negated;
    if (!set || class_members(source, set, &negated, 0) != 0) {
        free(set);
        return -1;
    }
    if (source->caseless)
        close_over_newer_cases(set);
    int result = check_folding(source, set, negated);
    if (result == 0)
        print_class(set, negated, out);
    free(set);
    return result;
}
