/*
 * emu_stream.h: streams, events and captured graphs.
 *
 * What is given to a stream waits in its queue. A synchronisation runs what it needs: under the order fwd
 * nothing else (other streams are as late as can be), under rev all other streams first, under randN any
 * mixture that the rules allow. The default stream waits for the earlier work of blocking streams, and they
 * for its. Host threads must not call the runtime at the same time.
 */
#ifndef EMU_STREAM_H
#define EMU_STREAM_H

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "emu.h"

namespace emu
{

/* One recording of an event. */
struct ticket {
    bool done;
    double seconds; /* when it was done */
    cudaStream_t where;
};

struct operation {
    uint64_t sequence; /* over all streams */
    std::function<void()> run;
    std::shared_ptr<ticket> wait, record; /* the operation is to wait for one, to complete one, or neither */
};

struct node {
    std::function<void()> run;
    std::vector<size_t> needs; /* nodes before it */
};

struct capture {
    cudaStream_t origin;
    cudaStreamCaptureMode mode;
    bool broken; /* something forbidden was called meanwhile */
    std::vector<node> nodes;
    std::vector<cudaStream_t> members;
};

} // namespace emu

/* The toolkit's handles are pointers to these. */
struct CUstream_st {
    bool blocking;
    std::deque<emu::operation> queue;
    std::shared_ptr<emu::capture> capturing;
    std::vector<size_t> frontier; /* while capturing: the nodes that the next one needs */
};

struct CUevent_st {
    std::shared_ptr<emu::ticket> last; /* NULL: never recorded */
    std::shared_ptr<emu::capture> captured;
    std::vector<size_t> frontier;
};

struct CUgraph_st {
    std::vector<emu::node> nodes;
};

struct CUgraphExec_st {
    std::shared_ptr<const std::vector<emu::node>> nodes;
};

namespace emu
{

/* The stream of a handle (0 and cudaStreamLegacy are the default one); NULL if there is none. */
cudaStream_t stream_of(cudaStream_t);
cudaStream_t stream_create(bool blocking);
void stream_destroy(cudaStream_t); /* its work is done first */
bool stream_idle(cudaStream_t);
/* Appends to the stream, or to the graph that it is captured into. */
cudaError_t enqueue(cudaStream_t, std::function<void()> run);
void event_record(cudaEvent_t, cudaStream_t);
cudaError_t event_wait(cudaStream_t, cudaEvent_t);

/* Run what is waiting: of one stream, up to one recording, of all. */
void run_stream(cudaStream_t);
void run_ticket(const ticket &);
void run_all();
/* One operation, if any can run: for those who poll. */
void run_some(cudaStream_t);

/* Ends (as broken) the captures that forbid what is being called; false if there was one. */
bool allowed_in_capture();

void streams_reset();

} // namespace emu

#endif
