/*
 * Capture and graphs. A graph holds the operations with their arguments as they were when captured; each
 * launch runs them again, in an order that the captured dependencies allow.
 */
#include <algorithm>

#include "emu_options.h"
#include "emu_runtime.h"
#include "emu_stream.h"

namespace emu
{

static size_t choose(const std::vector<size_t> &ready)
{
    switch (the_options.order) {
    case FORWARD:
        return 0;
    case REVERSE:
        return ready.size() - 1;
    default:
        return random_bits() % ready.size();
    }
}

static void run_nodes(const std::vector<node> &nodes)
{
    std::vector<size_t> missing(nodes.size()), ready;
    std::vector<std::vector<size_t>> followers(nodes.size());
    for (size_t i = 0; i < nodes.size(); i++) {
        missing[i] = nodes[i].needs.size();
        for (size_t before : nodes[i].needs)
            followers[before].push_back(i);
        if (missing[i] == 0)
            ready.push_back(i);
    }
    while (!ready.empty()) {
        size_t at = choose(ready), i = ready[at];
        ready.erase(ready.begin() + std::ptrdiff_t(at));
        nodes[i].run();
        for (size_t next : followers[i])
            if (--missing[next] == 0)
                ready.insert(std::upper_bound(ready.begin(), ready.end(), next), next);
    }
}

/* Whether every node is needed, directly or not, by what the origin would do next. */
static bool all_joined(const capture &c)
{
    std::vector<bool> reached(c.nodes.size());
    std::vector<size_t> rest = c.origin->frontier;
    while (!rest.empty()) {
        size_t i = rest.back();
        rest.pop_back();
        if (reached[i])
            continue;
        reached[i] = true;
        rest.insert(rest.end(), c.nodes[i].needs.begin(), c.nodes[i].needs.end());
    }
    return std::find(reached.begin(), reached.end(), false) == reached.end();
}

} // namespace emu

using namespace emu;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode)
{
    if (cudaError_t e = enter())
        return e;
    cudaStream_t s = stream_of(handle);
    if (!s)
        return note(cudaErrorInvalidResourceHandle);
    if (s == stream_of(nullptr) || s->capturing)
        return note(s->capturing ? cudaErrorIllegalState : cudaErrorStreamCaptureUnsupported);
    s->capturing = std::make_shared<capture>(capture{s, mode, false, {}, {s}});
    s->frontier.clear();
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *graph)
{
    if (cudaError_t e = enter())
        return e;
    cudaStream_t s = stream_of(handle);
    *graph = nullptr;
    if (!s || !s->capturing)
        return note(s ? cudaErrorIllegalState : cudaErrorInvalidResourceHandle);
    std::shared_ptr<capture> c = s->capturing;
    if (c->origin != s)
        return note(cudaErrorStreamCaptureUnmatched);
    cudaError_t result = c->broken         ? cudaErrorStreamCaptureInvalidated
                         : !all_joined(*c) ? cudaErrorStreamCaptureUnjoined
                                           : cudaSuccess;
    for (cudaStream_t member : c->members)
        member->capturing = nullptr;
    if (result == cudaSuccess)
        *graph = new CUgraph_st{c->nodes};
    c->broken = true; /* events recorded in it can no longer be waited for */
    return note(result);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus *status)
{
    if (cudaError_t e = enter())
        return e;
    cudaStream_t s = stream_of(handle);
    if (!s)
        return note(cudaErrorInvalidResourceHandle);
    *status = !s->capturing          ? cudaStreamCaptureStatusNone
              : s->capturing->broken ? cudaStreamCaptureStatusInvalidated
                                     : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *n)
{
    if (cudaError_t e = enter())
        return e;
    if (!graph || nodes) /* only the count is known */
        return note(graph ? cudaErrorNotSupported : cudaErrorInvalidValue);
    *n = graph->nodes.size();
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
    if (cudaError_t e = enter())
        return e;
    if (!graph)
        return note(cudaErrorInvalidValue);
    *exec = new CUgraphExec_st{std::make_shared<const std::vector<node>>(graph->nodes)};
    return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
    if (cudaError_t e = enter())
        return e;
    return note(exec && stream_of(stream) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    if (cudaError_t e = enter())
        return e;
    if (!exec)
        return note(cudaErrorInvalidValue);
    if (cudaError_t e = count_launch())
        return note(e);
    auto nodes = exec->nodes;
    return note(enqueue(stream, [nodes] { run_nodes(*nodes); }));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    if (cudaError_t e = enter())
        return e;
    delete exec;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    if (cudaError_t e = enter())
        return e;
    delete graph;
    return cudaSuccess;
}
}
