#include "faults.h"

#include <stdarg.h>
#include <stdio.h>

bool nl_fault(struct nl_faults *faults, const char *format, ...)
{
    char message[900];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    faults->count++;
    if (faults->error) {
        nl_fail(faults->error, NL_DATA, "%s: %s", message, faults->path);
        return false;
    }
    if (faults->report)
        faults->report(faults->context, faults->path, message);
    return true;
}

bool nl_fault_memory(struct nl_faults *faults)
{
    faults->no_memory = true;
    if (faults->error)
        nl_fail_memory(faults->error, faults->path);
    return false;
}
