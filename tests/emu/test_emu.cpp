/*
 * test_emu.cpp: runs the cases, each in a process of its own and under several orders, and says as TAP
 * whether the emulation saw what it must see. test_emu NAME runs the one case, here, for a debugger.
 */
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "cases.h"
#include "emu.h"
#include "emu_fiber.h" /* EMU_ASAN */

#if defined(EMU_TSAN) /* where a process takes long to make */
static const char *const orders[] = {"fwd", "rev"};
#else
static const char *const orders[] = {"fwd", "rev", "rand1", "rand2", "rand3"};
#endif

/* ---- what the cases call ---- */

void say(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    putchar(' ');
}

void check(cudaError_t e)
{
    if (e == cudaSuccess)
        return;
    say("unexpected %s", cudaGetErrorName(e));
    fflush(stdout);
    _exit(5);
}

float *device_floats(int n)
{
    std::vector<float> host;
    float *device;
    for (int i = 0; i < n; i++)
        host.push_back(1.0f / float(1 + i));
    check(cudaMalloc(reinterpret_cast<void **>(&device), size_t(n) * sizeof(float)));
    check(cudaMemcpy(device, host.data(), size_t(n) * sizeof(float), cudaMemcpyHostToDevice));
    return device;
}

void show(const void *floats, int n)
{
    std::vector<uint32_t> words(size_t(n), 0);
    memcpy(words.data(), floats, words.size() * 4);
    for (size_t i = 0, same; i < words.size(); i += same) {
        for (same = 1; i + same < words.size() && words[i + same] == words[i]; same++)
            ;
        if (same > 1)
            say("%08x x %zu", words[i], same);
        else
            say("%08x", words[i]);
    }
}

void show_device(const void *floats, int n)
{
    std::vector<float> host;
    host.resize(size_t(n));
    check(cudaDeviceSynchronize());
    check(cudaMemcpy(host.data(), floats, host.size() * sizeof(float), cudaMemcpyDeviceToHost));
    show(host.data(), n);
}

/* ---- running them ---- */

struct outcome {
    int status; /* of waitpid */
    std::string output, errors;
};

static std::string read_all(FILE *f)
{
    std::string text;
    char chunk[4096];
    rewind(f);
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, f)) > 0;)
        text.append(chunk, n);
    fclose(f);
    return text;
}

static outcome run_case(const test_case &c, const char *order)
{
    FILE *out = tmpfile(), *err = tmpfile();
    if (!out || !err) {
        puts("Bail out! no temporary files");
        exit(1);
    }
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        dup2(fileno(out), 1);
        dup2(fileno(err), 2);
        setenv("NL_EMU_ORDER", order, 1);
        emu_reset();
        c.run();
        fflush(stdout);
        _exit(0);
    }
    outcome o = {-1, "", ""};
    waitpid(child, &o.status, 0);
    o.output = read_all(out);
    o.errors = read_all(err);
    return o;
}

static bool contains(const std::string &text, const char *part)
{
    return text.find(part) != std::string::npos;
}

static bool all_right(const test_case &c, const std::vector<outcome> &seen)
{
    for (const outcome &o : seen)
        if (o.status != 0 || o.output != seen[0].output || (c.text && !contains(o.output, c.text)))
            return false;
    return true;
}

static bool any_differs(const std::vector<outcome> &seen)
{
    for (const outcome &o : seen)
        if (o.status == 0 && o.output != seen[0].output)
            return true;
    return false;
}

static bool all_die(const char *text, bool by_abort, const std::vector<outcome> &seen)
{
    for (const outcome &o : seen) {
        bool aborted = WIFSIGNALED(o.status) && WTERMSIG(o.status) == SIGABRT;
        if (o.status == 0 || (by_abort && !aborted) || !contains(o.errors, text))
            return false;
    }
    return true;
}

static bool as_expected(const test_case &c, const std::vector<outcome> &seen)
{
    switch (c.expected) {
    case RIGHT:
        return all_right(c, seen);
    case DIFFERS:
#if defined(EMU_TSAN)
        return all_die("data race", false, seen);
#endif
    case DIFFERS_UNSEEN:
        return any_differs(seen);
    default:
#if defined(EMU_ASAN)
        if (c.asan_text)
            return all_die(c.asan_text, false, seen);
#endif
        return all_die(c.text, true, seen);
    }
}

static void print_comment(const std::string &text)
{
    printf("#   ");
    for (size_t i = 0; i < text.size() && i < 600; i++)
        text[i] == '\n' ? fputs("\n#   ", stdout) : putchar(text[i]);
    putchar('\n');
}

static bool has_keys()
{
#if defined(PKEY_DISABLE_ACCESS)
    int key = pkey_alloc(0, 0);
    if (key >= 0)
        pkey_free(key);
    return key >= 0;
#else
    return false;
#endif
}

static bool runs_here(const test_case &c)
{
    if (c.expected == DIES_BY_KEY)
        return has_keys();
#if defined(EMU_ASAN)
    (void)c;
    return true;
#else
    return c.expected != DIES || c.text;
#endif
}

int main(int argc, char **argv)
{
    int n = 0, n_bad = 0;
    for (const test_case *list : {kernel_cases, host_cases, blas_cases}) {
        for (const test_case *c = list; c->name; c++) {
            if (argc > 1) {
                if (strcmp(c->name, argv[1]) == 0)
                    c->run();
                continue;
            }
            if (!runs_here(*c))
                continue;
            std::vector<outcome> seen;
            for (const char *order : orders)
                seen.push_back(run_case(*c, order));
            bool good = as_expected(*c, seen);
            printf("%sok %d - emulation: %s\n", good ? "" : "not ", ++n, c->name);
            n_bad += !good;
            for (size_t i = 0; !good && i < seen.size(); i++) {
                printf("#   %s: status %d\n", orders[i], seen[i].status);
                print_comment(seen[i].output);
                print_comment(seen[i].errors);
            }
        }
    }
    if (argc <= 1)
        printf("1..%d\n", n);
    return n_bad ? 1 : 0;
}
