internal import COpenSSL

/// Who frees OpenSSL's memory when the process ends.
package enum OpenSSLCleanup {
    /// Leaves it to the system. A program calls this before all else, because OpenSSL decides at
    /// its first use (OPENSSL_init_crypto(3), `OPENSSL_INIT_NO_ATEXIT`).
    ///
    /// Otherwise `exit` frees the memory while other threads still draw random bytes or read a
    /// certificate, and the process dies by a signal instead of returning its exit status.
    package static func leaveToSystem() {
        _ = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
    }
}
