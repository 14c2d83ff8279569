/*
 * locale_c.h: numbers are read and written with a point, whatever the locale of the thread.
 *
 *     locale_t before = nl_locale_enter();
 *     ... strtod, snprintf ...
 *     nl_locale_leave(before);
 */
#ifndef NL_LOCALE_C_H
#define NL_LOCALE_C_H

#include <locale.h>

static inline locale_t nl_locale_enter(void)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return c ? uselocale(c) : (locale_t)0;
}

static inline void nl_locale_leave(locale_t before)
{
    if (before)
        freelocale(uselocale(before));
}

#endif
