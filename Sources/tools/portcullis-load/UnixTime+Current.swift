import Cryptography
import Glibc

extension UnixTime {
    /// The machine's wall clock.
    static var current: UnixTime { UnixTime(seconds: Int64(time(nil))) }
}
