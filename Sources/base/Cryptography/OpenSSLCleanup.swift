internal import COpenSSL

/// Who frees what OpenSSL has when the process ends.
package enum OpenSSLCleanup {
    /// Leaves it to the system. The first call of a program's `main`: OpenSSL decides at its first
    /// use (OPENSSL_init_crypto(3), `OPENSSL_INIT_NO_ATEXIT`).
    ///
    /// Otherwise `exit` frees it while other threads still draw random bytes or read a certificate,
    /// and the process dies of a signal in place of its exit status.
    package static func leaveToSystem() {
        _ = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
    }
}
