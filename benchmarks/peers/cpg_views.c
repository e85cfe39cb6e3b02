/* One client of a Corosync daemon that sends a short message every 5 ms and tells when views come.
 *
 *     cpg_views GAP_MS        Build: gcc -O2 -o cpg_views cpg_views.c -lcpg
 *
 * It prints, with the time of the monotonic clock: "asked T" before it joins or leaves, "view T MEMBERS" for each view,
 * and "first T PAUSE" for the first message in it, with the longest time without any since the view before. It leaves
 * when its input ends.
 */
#include <corosync/cpg.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int is_first;
static double last, longest;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static void on_message(cpg_handle_t handle, const struct cpg_name *group, uint32_t node, uint32_t process, void *payload,
                       size_t size) {
    (void)handle, (void)group, (void)node, (void)process, (void)payload, (void)size;
    double time = now();
    if (last && time - last > longest) longest = time - last;
    last = time;
    if (is_first) {
        printf("first %.6f %.6f\n", time, longest);
        fflush(stdout);
        is_first = 0;
        longest = 0;
    }
}

static void on_change(cpg_handle_t handle, const struct cpg_name *group, const struct cpg_address *all, size_t count,
                      const struct cpg_address *left, size_t left_count, const struct cpg_address *joined,
                      size_t joined_count) {
    (void)handle, (void)group, (void)all, (void)left, (void)left_count, (void)joined, (void)joined_count;
    printf("view %.6f %zu\n", now(), count);
    fflush(stdout);
    is_first = 1;
}

int main(int count, char **given) {
    if (count != 2) return 2;
    double gap = atof(given[1]) / 1000;
    cpg_handle_t handle;
    cpg_callbacks_t callbacks = {.cpg_deliver_fn = on_message, .cpg_confchg_fn = on_change};
    struct cpg_name group = {.length = 5, .value = "views"};
    double limit = now() + 30;
    while (cpg_initialize(&handle, &callbacks) != CS_OK && now() < limit) nanosleep(&(struct timespec){0, 100000000}, 0);
    printf("asked %.6f\n", now());
    fflush(stdout);
    while (cpg_join(handle, &group) != CS_OK && now() < limit) nanosleep(&(struct timespec){0, 10000000}, 0);
    struct pollfd ready[2] = {{.events = POLLIN}, {.fd = 0, .events = POLLIN}};
    if (cpg_fd_get(handle, &ready[0].fd) != CS_OK) return 1;
    double due = now();
    while (1) {
        double wait = due - now();
        poll(ready, 2, wait > 0 ? (int)(wait * 1000) + 1 : 0);
        if (ready[1].revents) break;
        cpg_dispatch(handle, CS_DISPATCH_ALL);
        if (now() >= due) {
            char payload[16] = {0};
            struct iovec whole = {payload, sizeof payload};
            cpg_mcast_joined(handle, CPG_TYPE_AGREED, &whole, 1);
            due = now() + gap;
        }
    }
    printf("asked %.6f\n", now());
    fflush(stdout);
    cpg_leave(handle, &group);
    nanosleep(&(struct timespec){0, 300000000}, 0);
    return 0;
}
