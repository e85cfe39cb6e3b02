/* One client of a Corosync daemon (closed process group, agreed order), measured; prints one line of JSON.
 *
 *     cpg_member NAME SENDS SIZE LATENCY SECONDS MEMBERS
 *
 * It begins when all members have joined.   Build: gcc -O2 -o cpg_member cpg_member.c -lcpg -lz
 */
#include <corosync/cpg.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <zlib.h>

enum { COMPARED = 500, MOST_LATENCIES = 200000, BURST = 64 };

static unsigned members;
static char own_name;
static long heard, counted, came_back;
static uLong digest;
static double begin = 1e18, end = 0;
static double latencies[MOST_LATENCIES];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static void on_message(cpg_handle_t handle, const struct cpg_name *group, uint32_t node, uint32_t process, void *payload,
                       size_t size) {
    (void)handle, (void)group, (void)node, (void)process, (void)size;
    double time = now();
    heard++;
    if (heard <= COMPARED) digest = crc32(digest, payload, 9);
    if (begin <= time && time < end) counted++;
    if (*(char *)payload == own_name) came_back++;
}

static void on_change(cpg_handle_t handle, const struct cpg_name *group, const struct cpg_address *all, size_t count,
                      const struct cpg_address *left, size_t left_count, const struct cpg_address *joined,
                      size_t joined_count) {
    (void)handle, (void)group, (void)all, (void)left, (void)left_count, (void)joined, (void)joined_count;
    members = count;
}

static void dispatch(cpg_handle_t handle, struct pollfd *ready, int milliseconds) {
    poll(ready, 1, milliseconds);
    cpg_dispatch(handle, CS_DISPATCH_ALL);
}

static int send_one(cpg_handle_t handle, char *payload, size_t size, uint64_t number) {
    for (int place = 0; place < 8; place++) payload[1 + place] = number >> (56 - 8 * place);
    struct iovec whole = {payload, size};
    return cpg_mcast_joined(handle, CPG_TYPE_AGREED, &whole, 1) == CS_OK;
}

int main(int count, char **given) {
    if (count != 7) return 2;
    own_name = given[1][0];
    int sends = atoi(given[2]), latency = atoi(given[4]);
    size_t size = atol(given[3]);
    double seconds = atof(given[5]);
    unsigned wanted = atoi(given[6]);
    cpg_handle_t handle;
    cpg_callbacks_t callbacks = {.cpg_deliver_fn = on_message, .cpg_confchg_fn = on_change};
    struct cpg_name group = {.length = 5, .value = "bench"};
    double limit = now() + 30;
    while (cpg_initialize(&handle, &callbacks) != CS_OK && now() < limit) nanosleep(&(struct timespec){0, 100000000}, 0);
    while (cpg_join(handle, &group) != CS_OK && now() < limit) nanosleep(&(struct timespec){0, 10000000}, 0);
    struct pollfd ready = {.events = POLLIN};
    if (cpg_fd_get(handle, &ready.fd) != CS_OK) return 1;
    while (members < wanted && now() < limit) dispatch(handle, &ready, 50);
    if (members < wanted) return 1;
    begin = now() + 0.7;
    end = begin + seconds;
    char *payload = calloc(1, size);
    payload[0] = own_name;
    uint64_t number = 0;
    size_t measured = 0;
    while (now() < end + 0.5) {
        if (!sends || now() >= end) {
            dispatch(handle, &ready, 20);
        } else if (latency) {
            long before = came_back;
            double sent = now();
            while (!send_one(handle, payload, size, number)) nanosleep(&(struct timespec){0, 50000}, 0);
            number++;
            while (came_back == before && now() < end + 1) dispatch(handle, &ready, 1000);
            if (measured < MOST_LATENCIES) latencies[measured++] = now() - sent;
        } else {
            int took = 0;
            while (took < BURST && send_one(handle, payload, size, number)) number++, took++;
            dispatch(handle, &ready, took < BURST ? 1 : 0);
        }
    }
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double cpu = used.ru_utime.tv_sec + used.ru_stime.tv_sec + 1e-6 * (used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    printf("{\"rate\": %f, \"heard\": %ld, \"digest\": %lu, \"cpu\": %f, \"memory\": %f, \"latencies\": [", counted / seconds,
           heard, digest, cpu, used.ru_maxrss / 1024.0);
    for (size_t place = measured / 10; place < measured; place++)
        printf("%s%.7f", place > measured / 10 ? "," : "", latencies[place]);
    printf("]}\n");
    return 0;
}
