#include "number.h"

#include <math.h>
#include <stdlib.h>

#include "locale_c.h"

bool nl_take_whole(const char **text, uint64_t high, uint64_t *number)
{
    const char *at = *text;
    uint64_t value = 0;
    for (; *at >= '0' && *at <= '9'; at++)
        if (!nl_mul(value, 10, &value) || !nl_add(value, (uint64_t)(*at - '0'), &value) || value > high)
            return false;
    if (at == *text)
        return false;
    *text = at;
    *number = value;
    return true;
}

bool nl_take_number(const char **text, double *number)
{
    char *end;
    if (**text == ' ' || (**text >= '\t' && **text <= '\r')) /* strtod would skip it */
        return false;
    locale_t before = nl_locale_enter();
    double value = strtod(*text, &end);
    nl_locale_leave(before);
    if (end == *text || isnan(value))
        return false;
    *text = end;
    *number = value;
    return true;
}

bool nl_take_char(const char **text, char c)
{
    if (**text != c)
        return false;
    ++*text;
    return true;
}

int nl_take_ids(const char **text, struct nl_ids *ids, struct nl_error *error)
{
    do {
        uint64_t number;
        if (!nl_take_whole(text, UINT32_MAX, &number))
            return 0;
        uint32_t id = (uint32_t)number;
        if (nl_ids_add(ids, &id, 1, error) != 0)
            return -1;
    } while (nl_take_char(text, ','));
    return 1;
}

int nl_parse_whole(const char *option, const char *value, uint64_t low, uint64_t high, uint64_t *number,
                   struct nl_error *error)
{
    const char *rest = value;
    if (nl_take_whole(&rest, high, number) && !*rest && *number >= low)
        return 0;
    return nl_fail(error, NL_USAGE, "%s takes a whole number from %llu to %llu, not '%.100s'", option,
                   (unsigned long long)low, (unsigned long long)high, value);
}
