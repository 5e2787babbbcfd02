internal import COpenSSL

extension TLSSession {
    /// Encrypts bytes. While the handshake runs, they wait in plain.
    ///
    /// - Returns: whether they were accepted, all or none. Not after ``shutDown()``, not after a
    ///   failure, and not beyond `TLSLimits.untakenCiphertextMax` and
    ///   `TLSLimits.earlyPlaintextMax`.
    package func write(_ bytes: Span<UInt8>) -> Bool {
        guard !hasSentClose, !closesWhenEstablished else { return bytes.isEmpty }
        switch phase {
        case .failed: return false
        case .established, .peerClosed: return bytes.isEmpty || encrypt(bytes)
        case .handshaking:
            guard bytes.count <= TLSLimits.earlyPlaintextMax - earlyPlaintext.count else {
                return false
            }
            // The pointer lives for the call, and the copy is made inside it.
            bytes.withUnsafeBufferPointer { earlyPlaintext.append(contentsOf: $0) }
            if case .failed = shakeHands() { return false }
            return true
        }
    }

    /// Ends the output (close_notify), after the handshake if it still runs.
    package func shutDown() {
        switch phase {
        case .failed: return
        case .handshaking: closesWhenEstablished = true
        case .established, .peerClosed:
            guard !hasSentClose else { return }
            hasSentClose = true
            closesWhenEstablished = false
            ERR_clear_error()
            // 0 means that the peer has not closed its side yet, which is no error.
            if SSL_shutdown(pointer) < 0 { ERR_clear_error() }
        }
    }

    func encrypt(_ bytes: Span<UInt8>) -> Bool {
        guard bytes.count <= TLSLimits.untakenCiphertextMax - pipe.output.count else {
            return false
        }
        pipe.reserve(plaintext: bytes.count)
        // The pointer lives for the calls inside.
        return bytes.withUnsafeBytes { bytes in
            var start = 0
            while start < bytes.count {
                let rest = UnsafeRawBufferPointer(rebasing: bytes[start...])
                var written = 0
                ERR_clear_error()
                guard SSL_write_ex(pointer, rest.baseAddress, rest.count, &written) == 1 else {
                    _ = failed()
                    return false
                }
                start += written
                recordsCount += 1
                if recordsCount == TLSLimits.recordsPerKeyMax { updateKey() }
            }
            return true
        }
    }

    /// Changes the sending key (RFC 8446 §4.6.3).
    ///
    /// - Parameter isPeerAsked: whether the peer is asked to do the same.
    func updateKey(isPeerAsked: Bool = false) {
        recordsCount = 0
        ERR_clear_error()
        let kind = isPeerAsked ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED
        // TLS 1.2 has no such message, and numbers its records with 64 bits.
        guard SSL_key_update(pointer, kind) == 1, SSL_do_handshake(pointer) == 1 else {
            return ERR_clear_error()
        }
    }
}
