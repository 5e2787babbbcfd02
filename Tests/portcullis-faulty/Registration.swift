import Glibc

/// EPOLL_CTL_ADD.
private let addition: Int32 = 1

private typealias Control =
    @convention(c) @Sendable (Int32, Int32, Int32, UnsafeMutableRawPointer?) -> Int32

/// The next `epoll_ctl` behind ours: the C library's, which is what its manual page says. -1 is
/// RTLD_NEXT (dlsym(3)).
private let inner = unsafeBitCast(
    dlsym(UnsafeMutableRawPointer(bitPattern: -1), "epoll_ctl"),
    to: Control.self
)

/// The program's own symbol stands before the C library's. At ``Place/registration`` no socket can
/// be watched, as when the user may watch no more (epoll_ctl(2), ENOSPC).
@_cdecl("epoll_ctl")
public func control(
    _ set: Int32,
    _ operation: Int32,
    _ descriptor: Int32,
    _ event: UnsafeMutableRawPointer?
) -> Int32 {
    // Dispatch watches other things than sockets, and does not take a failure.
    if operation == addition, isSocket(descriptor), Ending.fails(.registration) {
        errno = ENOSPC
        return -1
    }
    return inner(set, operation, descriptor, event)
}

private func isSocket(_ descriptor: Int32) -> Bool {
    var status = stat()
    return fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFSOCK
}
