#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

const uint32_t clinux_in = EPOLLIN;
const uint32_t clinux_out = EPOLLOUT;
const uint32_t clinux_ending = EPOLLRDHUP | EPOLLHUP | EPOLLERR;
const uint32_t clinux_broken = EPOLLHUP | EPOLLERR;
const uint32_t clinux_both_edges = EPOLLIN | EPOLLOUT | EPOLLRDHUP | (uint32_t)EPOLLET;

int clinux_epoll_create(void) { return epoll_create1(EPOLL_CLOEXEC); }

int clinux_epoll_add(int set, int fd, uint32_t events, uint64_t token) {
    struct epoll_event event = { .events = events, .data = { .u64 = token } };
    return epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
}

int clinux_epoll_remove(int set, int fd) {
    struct epoll_event event = { 0 };
    return epoll_ctl(set, EPOLL_CTL_DEL, fd, &event);
}

int clinux_epoll_take(int set, clinux_event *out, int max, int milliseconds) {
    struct epoll_event events[256];
    if (max > 256) max = 256;
    int count = epoll_wait(set, events, max, milliseconds);
    for (int i = 0; i < count; i++) {
        out[i].events = events[i].events;
        out[i].token = events[i].data.u64;
    }
    return count;
}

int clinux_event_create(void) { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }

void clinux_event_raise(int fd) { eventfd_write(fd, 1); }

int clinux_accept(int fd, void *from, uint32_t *length) {
    return accept4(fd, from, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

int clinux_socket(int family) {
    return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static void set(int fd, int level, int name, int value) {
    setsockopt(fd, level, name, &value, sizeof value);
}

int64_t clinux_peer_user(int fd) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return -1;
    return peer.pid > 0 ? (int64_t)peer.uid : -1;
}

void clinux_set_no_delay(int fd) { set(fd, IPPROTO_TCP, TCP_NODELAY, 1); }

void clinux_share_port(int fd) { set(fd, SOL_SOCKET, SO_REUSEPORT, 1); }

void clinux_reuse_address(int fd, int on) { set(fd, SOL_SOCKET, SO_REUSEADDR, on); }

// Byte 13 of a TCP header holds the flags (RFC 9293 §3.1): 0x02 SYN, 0x10 ACK. The kernel runs the
// program over every segment that a listening socket gets; 0 drops the segment.
int clinux_refuse_syn(int fd) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x12),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x02, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, 0xffffffff),
    };
    struct sock_fprog program = { .len = 5, .filter = code };
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

void clinux_bound_unsent(int fd, int bytes) {
    set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, bytes);
}

void clinux_accept_both_families(int fd) { set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0); }

void clinux_reset_on_close(int fd) {
    struct linger now = { .l_onoff = 1, .l_linger = 0 };
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

void clinux_end_on_close(int fd) {
    struct linger later = { .l_onoff = 0, .l_linger = 0 };
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &later, sizeof later);
}

int clinux_open_unnamed(const char *folder) {
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || errno != EOPNOTSUPP) return fd;
    char name[PATH_MAX];
    int length = snprintf(name, sizeof name, "%s/.portcullis-XXXXXX", folder);
    if (length < 0 || (size_t)length >= sizeof name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(name, O_CLOEXEC);
    if (fd >= 0) unlink(name);
    return fd;
}

// Two pieces in one call; never raises SIGPIPE.
ptrdiff_t clinux_send(int fd, const void *a, size_t alen, const void *b, size_t blen,
                      int waits) {
    int flags = waits ? MSG_NOSIGNAL | MSG_MORE : MSG_NOSIGNAL;
    if (blen == 0) return send(fd, a, alen, flags);
    struct iovec pieces[2] = { { (void *)a, alen }, { (void *)b, blen } };
    struct msghdr message = { .msg_iov = pieces, .msg_iovlen = 2 };
    return sendmsg(fd, &message, flags);
}

#define DESCRIPTORS_MAX 250

ptrdiff_t clinux_send_descriptors(int fd, const void *bytes, size_t length, const int *fds,
                                  int count) {
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))] = { 0 };
    struct iovec piece = { (void *)bytes, length };
    struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1 };
    if (count > DESCRIPTORS_MAX) {
        errno = EINVAL;
        return -1;
    }
    if (count > 0) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
        memcpy(CMSG_DATA(head), fds, (size_t)count * sizeof(int));
    }
    return sendmsg(fd, &message, MSG_NOSIGNAL);
}

ptrdiff_t clinux_receive_descriptors(int fd, void *bytes, size_t max, int *fds, int *count) {
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))] = { 0 };
    struct iovec piece = { bytes, max };
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control
    };
    *count = 0;
    ptrdiff_t length = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    if (length < 0) return length;
    for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
        size_t more = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        if (*count + (int)more > DESCRIPTORS_MAX) more = (size_t)(DESCRIPTORS_MAX - *count);
        memcpy(fds + *count, CMSG_DATA(head), more * sizeof(int));
        *count += (int)more;
    }
    return length;
}

int clinux_socket_error(int fd) {
    int error = 0;
    socklen_t length = sizeof error;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : -1;
}

int clinux_alarm_create(void) {
    return timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
}

int clinux_alarm_set(int fd, uint64_t nanoseconds) {
    struct itimerspec moment = { 0 };
    moment.it_value.tv_sec = (time_t)(nanoseconds / 1000000000);
    moment.it_value.tv_nsec = (long)(nanoseconds % 1000000000);
    return timerfd_settime(fd, TFD_TIMER_ABSTIME, &moment, NULL);
}

int clinux_unacknowledged(int fd) {
    int count = 0;
    return ioctl(fd, SIOCOUTQ, &count) == 0 ? count : 0;
}

int clinux_spawn_closes_from(void *actions, int fd) {
    return posix_spawn_file_actions_addclosefrom_np(actions, fd);
}

int clinux_spawn_changes_folder(void *actions, const char *path) {
    return posix_spawn_file_actions_addchdir_np(actions, path);
}

int clinux_process_handle(int process) {
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, process, 0);
#else
    (void)process;
    errno = ENOSYS;
    return -1;
#endif
}

int clinux_forbid_new_privileges(void) { return prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L); }

int clinux_set_dumpable(int allowed) { return prctl(PR_SET_DUMPABLE, (long)allowed, 0L, 0L, 0L); }

uint64_t clinux_monotonic_nanoseconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

// A clock that costs a few nanoseconds and moves in steps of some milliseconds.
int64_t clinux_wall_milliseconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME_COARSE, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int clinux_clock_is_kept(void) {
    struct timex state = { .modes = 0 };
    int result = adjtimex(&state);
    if (result < 0) return -1;
    return result != TIME_ERROR && !(state.status & STA_UNSYNC);
}

uint64_t clinux_file_system(const char *path) {
    struct statfs facts;
    return statfs(path, &facts) == 0 ? (uint64_t)(uint32_t)facts.f_type : 0;
}

int clinux_access_as(const char *user, uint32_t uid, uint32_t gid, const char *path, int mode) {
    gid_t groups[64], before[64];
    int count = 64;
    if (getgrouplist(user, gid, groups, &count) < 0) count = 64;
    int held = getgroups(64, before);
    // As system calls they change this thread alone; glibc's functions change all threads.
    if (held < 0 || syscall(SYS_setgroups, count, groups) != 0) return 0;
    syscall(SYS_setfsgid, gid);
    syscall(SYS_setfsuid, uid);
    int result = (int)syscall(SYS_faccessat2, AT_FDCWD, path, mode, AT_EACCESS);
    int why = errno;
    syscall(SYS_setfsuid, geteuid());
    syscall(SYS_setfsgid, getegid());
    syscall(SYS_setgroups, held, before);
    errno = why;
    return why == ENOSYS ? 0 : result;
}
