internal import COpenSSL

extension TLSSession {
    /// Decrypts into `buffer`, which is not empty, as many records as fit.
    ///
    /// Each byte is copied once, out of OpenSSL's record. Call again until it needs input.
    package func read(into buffer: UnsafeMutableRawBufferPointer) -> ReadOutcome {
        precondition(!buffer.isEmpty, "TLSSession: a buffer to read into")
        goOn()
        switch phase {
        case .failed(let failure): return .failed(failure)
        case .peerClosed: return .closed
        case .handshaking: return .needsInput
        case .established: return readRecords(into: buffer)
        }
    }

    /// Feeds and reads in one step, which avoids a copy of the fed bytes.
    package func read(
        into buffer: UnsafeMutableRawBufferPointer,
        feeding bytes: Span<UInt8>
    ) -> ReadOutcome {
        guard admit(bytes) else { return read(into: buffer) }
        return pipe.lending(bytes) { read(into: buffer) }
    }

    private func readRecords(into buffer: UnsafeMutableRawBufferPointer) -> ReadOutcome {
        let writtenBefore = pipe.writtenCount
        var count = 0
        reading: while count < buffer.count {
            ERR_clear_error()
            var read = 0
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
            // OpenSSL writes at most `rest.count` bytes, in this call.
            let result = SSL_read_ex(pointer, rest.baseAddress, rest.count, &read)
            if result == 1 {
                count += read
                if pipe.unreadCount == 0, SSL_has_pending(pointer) == 0 { break reading }
                continue
            }
            switch SSL_get_error(pointer, result) {
            case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: break reading
            case SSL_ERROR_ZERO_RETURN:
                phase = .peerClosed
                break reading
            default:
                _ = failed()
                break reading
            }
        }
        let written = pipe.writtenCount - writtenBefore
        hasAnswered = written > 0
        answersCount = count > 0 ? 0 : answersCount + written
        if count > 0 { return .bytes(count) }
        return withoutBytes()
    }

    private func withoutBytes() -> ReadOutcome {
        switch phase {
        case .failed(let failure): return .failed(failure)
        case .peerClosed: return .closed
        case .handshaking, .established:
            guard answersCount <= TLSLimits.answersMax else {
                let failure = TLSFailure(.limitReached, "too many key updates without content")
                phase = .failed(failure)
                return .failed(failure)
            }
            return .needsInput
        }
    }

    /// Continues the handshake as far as the input allows, and reads nothing.
    package func goOn() {
        if case .handshaking = phase { _ = shakeHands() }
    }

    /// Whether a read may return bytes or the end without more input.
    package var mayHoldPlaintext: Bool {
        switch phase {
        case .failed, .peerClosed: true
        case .handshaking, .established: pipe.unreadCount > 0 || SSL_has_pending(pointer) == 1
        }
    }

    /// Continues the handshake as far as the input allows, then does the work that waited for its
    /// end.
    private func shakeHands() -> Phase {
        ERR_clear_error()
        let result = SSL_do_handshake(pointer)
        guard result == 1 else {
            switch SSL_get_error(pointer, result) {
            case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: break
            default:
                _ = failed()
                resumption?.forget()
            }
            return phase
        }
        guard isProtocolAgreed else {
            fail(.noSharedProtocol, "the peer chose a protocol that was not offered")
            return phase
        }
        phase = .established
        let early = earlyPlaintext
        earlyPlaintext = []
        if !early.isEmpty { _ = encrypt(early.span) }
        if closesWhenEstablished { shutDown() }
        return phase
    }

    /// A peer that chooses no protocol speaks HTTP/1.1 anyway.
    private var isProtocolAgreed: Bool {
        guard let name = applicationProtocol else { return true }
        return context.protocols.contains(name)
    }

    /// The negotiated application protocol (RFC 7301); `nil` for none.
    package var applicationProtocol: String? {
        var name: UnsafePointer<UInt8>?
        var length: UInt32 = 0
        SSL_get0_alpn_selected(pointer, &name, &length)
        // OpenSSL keeps the name as long as the session.
        let selected = UnsafeBufferPointer(start: name, count: Int(length))
        return selected.isEmpty ? nil : String(decoding: selected, as: UTF8.self)
    }
}

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

    private func encrypt(_ bytes: Span<UInt8>) -> Bool {
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
