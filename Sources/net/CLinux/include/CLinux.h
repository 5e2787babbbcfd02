// What the Glibc module does not show Swift: epoll, accept4, and a few options behind macros.
// Every function is a thin name for one system call; errno is the caller's to read.
//
// No system header is included here: seen through two modules, its types would differ.
#ifndef CLINUX_H
#define CLINUX_H

#include <stddef.h>
#include <stdint.h>

// epoll_event is packed on x86-64, so Swift reads it through this copy.
typedef struct { uint32_t events; uint64_t token; } clinux_event;

extern const uint32_t clinux_in;
extern const uint32_t clinux_out;
extern const uint32_t clinux_ending;      // RDHUP, HUP, ERR
extern const uint32_t clinux_broken;      // HUP, ERR
extern const uint32_t clinux_both_edges;  // IN, OUT and RDHUP, edge-triggered

int clinux_epoll_create(void);
int clinux_epoll_add(int set, int fd, uint32_t events, uint64_t token);
int clinux_epoll_remove(int set, int fd);
// Waits so long at most. At most 256 events are taken in one call; the rest stay ready.
int clinux_epoll_take(int set, clinux_event *out, int max, int milliseconds);

// A descriptor that has an edge, IN, each time it is raised.
int clinux_event_create(void);
void clinux_event_raise(int fd);

// Both are non-blocking and closed on exec. `from` is a sockaddr_storage.
int clinux_accept(int fd, void *from, uint32_t *length);
int clinux_socket(int family);

int64_t clinux_peer_user(int fd);           // SO_PEERCRED; -1 where there is none
void clinux_set_no_delay(int fd);
void clinux_share_port(int fd);            // SO_REUSEPORT
void clinux_reuse_address(int fd, int on); // SO_REUSEADDR
void clinux_bound_unsent(int fd, int bytes);  // TCP_NOTSENT_LOWAT
// A listening TCP socket ignores requests for new connections; handshakes under way go on.
int clinux_refuse_syn(int fd);             // SO_ATTACH_FILTER
void clinux_accept_both_families(int fd);  // IPV6_V6ONLY off
void clinux_reset_on_close(int fd);        // SO_LINGER, 0 seconds
void clinux_end_on_close(int fd);          // SO_LINGER off
int clinux_socket_error(int fd);           // SO_ERROR, or -1
int clinux_unacknowledged(int fd);         // bytes sent and not acknowledged: SIOCOUTQ, or 0

// A file without a name in a folder: O_TMPFILE, read and write, mode 0600. Some file systems have
// none, as a container's own layer (overlay) on Debian 12; there the file has a name for a moment.
int clinux_open_unnamed(const char *folder);

// Two pieces in one call; never raises SIGPIPE. With `waits` the kernel keeps them until more is
// sent or the direction is ended, so that both go out in one segment (MSG_MORE).
ptrdiff_t clinux_send(int fd, const void *a, size_t alen, const void *b, size_t blen, int waits);

// A message with descriptors, which the receiver gets as its own, closed on exec: at most 250 in
// one (SCM_RIGHTS, unix(7)). Receiving sets `count` to those that came.
ptrdiff_t clinux_send_descriptors(int fd, const void *bytes, size_t length, const int *fds,
                                  int count);
ptrdiff_t clinux_receive_descriptors(int fd, void *bytes, size_t max, int *fds, int *count);

// A clock that makes its descriptor readable at a moment of the monotonic clock; 0 disarms it.
int clinux_alarm_create(void);
int clinux_alarm_set(int fd, uint64_t nanoseconds);
// A descriptor that is readable once the process has ended (pidfd_open).
int clinux_process_handle(int process);
// A process that is spawned gets no descriptor from this one on. `actions` is a
// posix_spawn_file_actions_t.
int clinux_spawn_closes_from(void *actions, int fd);
// A process that is spawned begins in this folder.
int clinux_spawn_changes_folder(void *actions, const char *path);
// Nothing the process executes gains privileges. Of the calling thread and those it starts later.
int clinux_forbid_new_privileges(void);
// Whether there may be a core file, and other processes of the same user look into the memory.
int clinux_set_dumpable(int allowed);

// faccessat2 with AT_EACCESS as another user with all its groups: 0, or -1 and errno. For root; 0
// where it can't be asked. Of all threads, only the calling one has other rights meanwhile.
int clinux_access_as(const char *user, uint32_t uid, uint32_t gid, const char *path, int mode);

uint64_t clinux_monotonic_nanoseconds(void);
// It costs a few nanoseconds and moves in steps of some milliseconds.
int64_t clinux_wall_milliseconds(void);
// Whether a program keeps the clock right (adjtimex): 1, 0, or -1 where it can't be asked.
int clinux_clock_is_kept(void);
// What kind of file system a path is on (statfs, f_type); 0 where it can't be asked.
uint64_t clinux_file_system(const char *path);

#endif
