#include "emu_stream.h"

#include <algorithm>
#include <ctime>

#include "emu_memory.h"
#include "emu_options.h"

namespace emu
{

static std::vector<cudaStream_t> streams; /* in order of creation; the default one first */
static uint64_t n_enqueued;

static cudaStream_t default_stream()
{
    if (streams.empty())
        streams.push_back(new CUstream_st{true, {}, nullptr, {}});
    return streams[0];
}

cudaStream_t stream_of(cudaStream_t handle)
{
    cudaStream_t first = default_stream();
    if (!handle || handle == cudaStreamLegacy)
        return first;
    return std::find(streams.begin(), streams.end(), handle) != streams.end() ? handle : nullptr;
}

cudaStream_t stream_create(bool blocking)
{
    default_stream();
    streams.push_back(new CUstream_st{blocking, {}, nullptr, {}});
    return streams.back();
}

void stream_destroy(cudaStream_t s)
{
    run_stream(s);
    streams.erase(std::find(streams.begin(), streams.end(), s));
    delete s;
}

bool stream_idle(cudaStream_t s)
{
    return s->queue.empty();
}

/* ---- who may run ---- */

/* The stream that must run before the first operation of `s` can; NULL: it can. */
static cudaStream_t obstacle(cudaStream_t s)
{
    const operation &first = s->queue.front();
    if (first.wait && !first.wait->done)
        return first.wait->where;
    if (!s->blocking)
        return nullptr;
    for (cudaStream_t other : streams) {
        bool related = other->blocking && other != s && (s == streams[0] || other == streams[0]);
        if (related && !other->queue.empty() && other->queue.front().sequence < first.sequence)
            return other;
    }
    return nullptr;
}

/* Where to begin so that `s` gets on: a recording comes before its waiting, so this ends. */
static cudaStream_t needed_for(cudaStream_t s)
{
    while (cudaStream_t other = obstacle(s))
        s = other;
    return s;
}

static double now()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

static void step(cudaStream_t s)
{
    operation o = std::move(s->queue.front());
    s->queue.pop_front();
    if (o.run) {
        device_open();
        o.run();
        device_close();
    }
    if (o.record) {
        o.record->done = true;
        o.record->seconds = now();
    }
}

/* The streams that have work which can run now. */
static std::vector<cudaStream_t> able()
{
    std::vector<cudaStream_t> list;
    for (cudaStream_t s : streams)
        if (!s->queue.empty() && !obstacle(s))
            list.push_back(s);
    return list;
}

/* Runs until `s` has got past what `finished` asks for. */
template <class F> static void run_until(cudaStream_t s, F finished)
{
    device_open();
    while (!finished()) {
        cudaStream_t next = needed_for(s);
        std::vector<cudaStream_t> list;
        if (the_options.order != FORWARD)
            list = able();
        if (the_options.order == RANDOM)
            next = list[random_bits() % list.size()];
        if (the_options.order == REVERSE) /* the youngest that is not wanted */
            for (cudaStream_t other : list)
                next = other != s ? other : next;
        step(next);
    }
    device_close();
}

void run_stream(cudaStream_t s)
{
    run_until(s, [s] { return s->queue.empty(); });
}

void run_ticket(const ticket &t)
{
    run_until(t.where, [&t] { return t.done; });
}

void run_all()
{
    if (the_options.order == REVERSE) {
        for (size_t i = streams.size(); i-- > 0;)
            run_stream(streams[i]);
    } else {
        for (size_t i = 0; i < streams.size(); i++)
            run_stream(streams[i]);
    }
}

void run_some(cudaStream_t s)
{
    if (!s->queue.empty())
        step(needed_for(s));
}

/* ---- giving work ---- */

bool allowed_in_capture()
{
    bool allowed = true;
    for (cudaStream_t s : streams) {
        if (s->capturing && s->capturing->mode != cudaStreamCaptureModeRelaxed) {
            s->capturing->broken = true;
            allowed = false;
        }
    }
    return allowed;
}

cudaError_t enqueue(cudaStream_t handle, std::function<void()> run)
{
    cudaStream_t s = stream_of(handle);
    if (!s)
        return cudaErrorInvalidResourceHandle;
    if (!s->capturing) {
        if (s == streams[0] && !allowed_in_capture())
            return cudaErrorStreamCaptureImplicit;
        s->queue.push_back({++n_enqueued, std::move(run), nullptr, nullptr});
        return cudaSuccess;
    }
    capture &c = *s->capturing;
    if (c.broken)
        return cudaErrorStreamCaptureInvalidated;
    c.nodes.push_back({std::move(run), s->frontier});
    s->frontier = {c.nodes.size() - 1};
    return cudaSuccess;
}

void event_record(cudaEvent_t e, cudaStream_t s)
{
    e->captured = s->capturing;
    if (s->capturing) {
        e->frontier = s->frontier;
        return;
    }
    e->last = std::make_shared<ticket>(ticket{false, 0, s});
    s->queue.push_back({++n_enqueued, nullptr, nullptr, e->last});
}

cudaError_t event_wait(cudaStream_t s, cudaEvent_t e)
{
    if (e->captured) { /* the stream joins the capture, or is in it */
        if (e->captured->broken || (s->capturing && s->capturing != e->captured))
            return cudaErrorStreamCaptureMerge;
        if (!s->capturing) {
            s->capturing = e->captured;
            s->capturing->members.push_back(s);
            s->frontier.clear();
        }
        s->frontier.insert(s->frontier.end(), e->frontier.begin(), e->frontier.end());
        return cudaSuccess;
    }
    if (s->capturing) {
        s->capturing->broken = true;
        return cudaErrorStreamCaptureIsolation;
    }
    if (e->last && !e->last->done)
        s->queue.push_back({++n_enqueued, nullptr, e->last, nullptr});
    return cudaSuccess;
}

void streams_reset()
{
    for (cudaStream_t s : streams)
        delete s;
    streams.clear();
    n_enqueued = 0;
}

} // namespace emu
