/* cases_host.cpp: what the host side can do wrong: streams, events, graphs, pointers, errors. */
#include "cases.h"

#include <cstdlib>
#include <cstring>

#include "emu.h"

namespace
{

cudaStream_t new_stream()
{
    cudaStream_t s;
    check(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    return s;
}

cudaEvent_t new_event()
{
    cudaEvent_t e;
    check(cudaEventCreate(&e));
    return e;
}

float *pinned_floats(float value)
{
    void *p;
    check(cudaHostAlloc(&p, N * sizeof(float), cudaHostAllocDefault));
    for (int i = 0; i < N; i++)
        static_cast<float *>(p)[i] = value;
    return static_cast<float *>(p);
}

const size_t SIZE = N * sizeof(float);

/* ---- synchronisation ---- */

/* Three kernels over two streams; `wait` makes the second wait for the first. */
void two_streams(bool wait)
{
    cudaStream_t first = new_stream(), second = new_stream();
    cudaEvent_t ready = new_event();
    float *a = device_floats(N), *b = device_floats(N), *c = device_floats(N);
    check(run_scale(b, a, 3, first));
    check(cudaEventRecord(ready, first));
    if (wait)
        check(cudaStreamWaitEvent(second, ready, 0));
    check(run_scale(c, b, 2, second));
    check(cudaStreamSynchronize(second));
    check(cudaStreamSynchronize(first));
    show_device(c, N);
}
void streams_with_event()
{
    two_streams(true);
}
void streams_without_event()
{
    two_streams(false);
}

void read_back(bool synchronise)
{
    cudaStream_t s = new_stream();
    float *a = device_floats(N), *b = device_floats(N), *host = pinned_floats(7);
    check(run_scale(b, a, 0, s));
    check(cudaMemcpyAsync(host, b, SIZE, cudaMemcpyDeviceToHost, s));
    if (synchronise)
        check(cudaStreamSynchronize(s));
    show(host, N);
}
void read_back_waits()
{
    read_back(true);
}
void read_back_at_once()
{
    read_back(false);
}

/* The source of a copy is overwritten: pinned memory before its time, pageable memory when it may be. */
void overwritten_source()
{
    cudaStream_t s = new_stream();
    float *d = device_floats(N), *host = pinned_floats(1), pageable[N] = {2};
    check(cudaMemcpyAsync(d, host, SIZE / 2, cudaMemcpyHostToDevice, s));
    check(cudaMemcpyAsync(d + N / 2, pageable, SIZE / 2, cudaMemcpyHostToDevice, s));
    memset(host, 0, SIZE);
    memset(pageable, 0, SIZE);
    check(cudaStreamSynchronize(s));
    show_device(d, 1);
    show_device(d + N / 2, 1);
}

/* The default stream and a blocking one wait for each other; time goes on. */
void default_stream()
{
    cudaStream_t s;
    cudaEvent_t from = new_event(), to = new_event();
    float *a = device_floats(N), *b = device_floats(N), *c = device_floats(N), ms = -1;
    check(cudaStreamCreate(&s));
    check(run_scale(b, a, 2, s));
    check(cudaEventRecord(from, s));
    check(run_scale(c, b, 2, nullptr));
    check(run_scale(a, c, 2, s));
    check(cudaEventRecord(to, s));
    say("%s", cudaGetErrorName(cudaEventElapsedTime(&ms, from, to)));
    check(cudaEventSynchronize(to));
    check(cudaEventElapsedTime(&ms, from, to));
    say("%d", ms >= 0);
    show_device(a, 1);
}

void copy_in_rows()
{
    float *d = device_floats(N), host[12] = {0};
    check(cudaMemset(d, 0, SIZE));
    float rows[2][3] = {{1, 2, 3}, {4, 5, 6}};
    check(cudaMemcpy2DAsync(d, 16, rows, 12, 12, 2, cudaMemcpyHostToDevice, nullptr));
    check(cudaMemcpy(host, d, sizeof host, cudaMemcpyDeviceToHost));
    for (float x : host)
        say("%g", double(x));
    say("%s", cudaGetErrorName(cudaMemcpy(host, d + N - 1, 8, cudaMemcpyDeviceToHost)));
    say("%s", cudaGetErrorName(cudaMemcpy(host, d, 8, cudaMemcpyHostToDevice)));
}

void poll()
{
    cudaStream_t s = new_stream();
    float *a = device_floats(N), *b = device_floats(N);
    check(run_scale(b, a, 2, s));
    check(run_scale(a, b, 2, s));
    int polls = 0;
    while (cudaStreamQuery(s) == cudaErrorNotReady)
        polls++;
    say("%d", polls);
    show_device(a, 1);
}

/* ---- graphs ---- */

/* Two steps of one graph; what differs between them is where the step's parameters are. */
cudaGraphExec_t captured(cudaStream_t s, cudaError_t (*work)(cudaStream_t))
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    check(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    check(work(s));
    check(cudaStreamEndCapture(s, &graph));
    check(cudaGraphInstantiate(&exec, graph, 0));
    check(cudaGraphDestroy(graph));
    return exec;
}

float *g_out, *g_in, *g_other;
scale_step *g_step, g_argument;

void two_steps(cudaError_t (*work)(cudaStream_t))
{
    cudaStream_t s = new_stream();
    g_out = device_floats(N);
    g_in = device_floats(N);
    g_other = device_floats(N);
    check(cudaMalloc(reinterpret_cast<void **>(&g_step), sizeof *g_step));
    g_argument = {g_in, 2};
    cudaGraphExec_t exec = captured(s, work);
    for (int i = 0; i < 2; i++) {
        check(cudaMemcpyAsync(g_step, &g_argument, sizeof g_argument, cudaMemcpyHostToDevice, s));
        check(cudaGraphLaunch(exec, s));
        check(cudaStreamSynchronize(s));
        show_device(g_out, 1);
        g_argument = {g_other, 5};
    }
    check(cudaGraphExecDestroy(exec));
}
void graph_with_step()
{
    two_steps([](cudaStream_t s) { return run_scale_by(g_out, g_step, s); });
}
void graph_with_old_argument()
{
    two_steps([](cudaStream_t s) { return run_scale_of(g_out, g_argument, s); });
}

/* A fork and a join within a capture; without the second event the branch is not ordered before the end. */
void fork(bool join)
{
    cudaStream_t s = new_stream(), branch = new_stream();
    cudaEvent_t forked = new_event(), joined = new_event();
    float *a = device_floats(N), *b = device_floats(N), *c = device_floats(N);
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    check(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    check(run_scale(b, a, 2, s));
    check(cudaEventRecord(forked, s));
    check(cudaStreamWaitEvent(branch, forked, 0));
    check(run_scale(c, b, 2, branch));
    check(cudaEventRecord(joined, branch));
    check(run_scale(a, b, 3, s));
    if (join)
        check(cudaStreamWaitEvent(s, joined, 0));
    check(run_scale(b, join ? c : a, 10, s));
    cudaError_t e = cudaStreamEndCapture(s, &graph);
    say("%s", cudaGetErrorName(e));
    if (e)
        return;
    check(cudaGraphInstantiate(&exec, graph, 0));
    check(cudaGraphLaunch(exec, s));
    check(cudaStreamSynchronize(s));
    show_device(b, N);
}
void graph_joined()
{
    fork(true);
}
void graph_unjoined()
{
    fork(false);
}

void forbidden_while_capturing()
{
    cudaStream_t s = new_stream();
    cudaGraph_t graph;
    void *p;
    float *a = device_floats(N);
    for (int i = 0; i < 4; i++) {
        check(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
        cudaError_t e = i == 0   ? cudaStreamSynchronize(s)
                        : i == 1 ? cudaMalloc(&p, 16)
                        : i == 2 ? run_scale(a, a, 1, nullptr)
                                 : cudaDeviceSynchronize();
        say("%s", cudaGetErrorName(e));
        say("%s", cudaGetErrorName(cudaStreamEndCapture(s, &graph)));
    }
}

/* ---- pointers ---- */

void host_reads_device()
{
    float *d = device_floats(N);
    say("%g", double(d[5]));
}

void host_reads_pages()
{
    setenv("NL_EMU_KEYS", "0", 1);
    emu_reset();
    host_reads_device();
}

void host_pointer()
{
    float *d = device_floats(N), host[N] = {1};
    check(run_scale(d, host, 2, nullptr));
    show_device(d, 1);
}

void pinned_pointer()
{
    float *d = device_floats(N), *host = pinned_floats(3);
    check(run_scale(d, host, 2, nullptr));
    show_device(d, N);
}

void device_not_written()
{
    float *d;
    check(cudaMalloc(reinterpret_cast<void **>(&d), SIZE));
    show_device(d, N);
}

/* ---- faults ---- */

void with_faults(const char *faults)
{
    setenv("NL_EMU_FAIL", faults, 1);
    emu_reset();
}

void no_memory()
{
    void *p;
    size_t free_bytes, total;
    with_faults("malloc:2,host:1");
    check(cudaMalloc(&p, 16));
    say("%s", cudaGetErrorName(cudaMalloc(&p, 16)));
    check(cudaMalloc(&p, 16));
    say("%s", cudaGetErrorName(cudaMallocHost(&p, 16)));
    check(cudaMallocHost(&p, 16));
    setenv("NL_EMU_MEMORY", "1000", 1);
    with_faults("");
    check(cudaMalloc(&p, 600));
    say("%s", cudaGetErrorName(cudaMalloc(&p, 500)));
    check(cudaMemGetInfo(&free_bytes, &total));
    say("%zu %zu", free_bytes, total);
    check(cudaFree(p));
}

void launch_refused()
{
    with_faults("launch:2");
    float *d = device_floats(N);
    check(run_scale(d, d, 2, nullptr));
    say("%s", cudaGetErrorName(run_scale(d, d, 2, nullptr)));
    say("%s", cudaGetErrorName(cudaGetLastError()));
    check(run_scale(d, d, 2, nullptr));
    show_device(d, 1);
}

void kernel_fails()
{
    with_faults("kernel:2");
    float *d = device_floats(N);
    check(run_scale(d, d, 2, nullptr));
    check(cudaDeviceSynchronize());
    check(run_scale(d, d, 2, nullptr));
    say("%s", cudaGetErrorName(cudaDeviceSynchronize()));
    say("%s", cudaGetErrorName(cudaMemset(d, 0, 4)));
    say("%s", cudaGetErrorString(cudaGetLastError()));
    say("%s", cudaGetErrorName(cudaGetLastError()));
}

void device_lost()
{
    with_faults("lost:4");
    float *d = device_floats(N);
    check(run_scale(d, d, 2, nullptr));
    say("%s", cudaGetErrorName(cudaDeviceSynchronize()));
    say("%s", cudaGetErrorName(cudaGetDeviceCount(nullptr)));
}

} // namespace

const test_case host_cases[] = {
    {"streams ordered by an event", streams_with_event, RIGHT, nullptr, nullptr},
    {"a result that was waited for", read_back_waits, RIGHT, "00000000 x 128", nullptr},
    {"copies from pinned and pageable memory", overwritten_source, RIGHT, "00000000 40000000", nullptr},
    {"the default stream, event times", default_stream, RIGHT, "cudaErrorNotReady 1 41000000", nullptr},
    {"copies in rows, wrong copies", copy_in_rows, RIGHT,
     "1 2 3 0 4 5 6 0 0 0 0 0 cudaErrorInvalidValue cudaErrorInvalidValue", nullptr},
    {"polling a stream gets on", poll, RIGHT, "40800000", nullptr},
    {"a graph that reads its step from the device", graph_with_step, RIGHT, "40000000 40a00000", nullptr},
    {"a graph with a branch", graph_joined, RIGHT, "cudaSuccess", nullptr},
    {"what must not be called during a capture", forbidden_while_capturing, RIGHT,
     "cudaErrorStreamCaptureUnsupported cudaErrorStreamCaptureInvalidated "
     "cudaErrorStreamCaptureUnsupported cudaErrorStreamCaptureInvalidated "
     "cudaErrorStreamCaptureImplicit cudaErrorStreamCaptureInvalidated "
     "cudaErrorStreamCaptureUnsupported cudaErrorStreamCaptureInvalidated",
     nullptr},
    {"kernels read pinned memory", pinned_pointer, RIGHT, "40c00000 x 128", nullptr},
    {"no memory", no_memory, RIGHT,
     "cudaErrorMemoryAllocation cudaErrorMemoryAllocation cudaErrorMemoryAllocation 400 1000", nullptr},
    {"a launch is refused", launch_refused, RIGHT,
     "cudaErrorLaunchOutOfResources cudaErrorLaunchOutOfResources 40800000", nullptr},
    {"a kernel fails", kernel_fails, RIGHT,
     "cudaErrorLaunchFailure cudaErrorLaunchFailure unspecified launch failure cudaErrorLaunchFailure",
     nullptr},
    {"the device is lost", device_lost, RIGHT, "cudaErrorUnknown cudaErrorUnknown", nullptr},

    {"streams without an event", streams_without_event, DIFFERS_UNSEEN, nullptr, nullptr},
    {"a result that was not waited for", read_back_at_once, RIGHT, "40e00000 x 128", nullptr},
    {"a graph with an argument that changes", graph_with_old_argument, RIGHT, "40000000 40000000", nullptr},
    {"a graph with a branch that is not joined", graph_unjoined, RIGHT, "cudaErrorStreamCaptureUnjoined",
     nullptr},
    {"device memory never written", device_not_written, RIGHT, "ffffffff x 128", nullptr},
    {"host reads device memory", host_reads_device, DIES, "host access to device memory", nullptr},
    {"host reads device memory, without protection keys", host_reads_pages, DIES,
     "host access to device memory", nullptr},
    {"a host pointer given to a kernel", host_pointer, DIES, "argument 1, ", nullptr},
    {nullptr, nullptr, RIGHT, nullptr, nullptr},
};
