import CLinux
import Glibc

extension Connection {
    /// Sends one or two pieces, in order. Bytes that the kernel does not take at once are kept.
    ///
    /// The caller bounds the kept bytes: it stops its source while ``unsentBytes`` is not zero.
    package final func write(
        _ first: Span<UInt8>,
        _ second: Span<UInt8>,
        before sequel: Sequel = .more
    ) -> WriteOutcome {
        guard !isClosed else { return .failed(.closed) }
        if let tls {
            guard tls.write(first), tls.write(second) else { return .failed(.tlsWrite) }
            return sendCiphertext(of: tls, before: sequel)
        }
        guard unsentBytes == 0, isWritable else {
            keep(first, second, from: 0)
            return .queued
        }
        // The pointers live for the call only.
        let count = first.withUnsafeBytes { first in
            second.withUnsafeBytes { second in
                clinux_send(
                    descriptor,
                    first.baseAddress,
                    first.count,
                    second.baseAddress,
                    second.count,
                    sequel.rawValue
                )
            }
        }
        if count > 0 { hasSent = true }
        if count == first.count + second.count { return .sent }
        guard count >= 0 || errno == EAGAIN || errno == EINTR else {
            return sendFailed()
        }
        if count >= 0 || errno == EAGAIN { isWritable = false }
        keep(first, second, from: max(count, 0))
        return isWritable ? flush(before: sequel) : .queued
    }

    /// Sends one piece.
    package final func write(_ bytes: Span<UInt8>) -> WriteOutcome { write(bytes, Span()) }

    private func keep(_ first: Span<UInt8>, _ second: Span<UInt8>, from start: Int) {
        if start < first.count { keep(first.extracting(start...)) }
        let skipped = max(start - first.count, 0)
        if skipped < second.count { keep(second.extracting(skipped...)) }
    }

    private func keep(_ bytes: Span<UInt8>) {
        // The pointer lives for the call, and the copy is made inside it.
        bytes.withUnsafeBufferPointer { unsent.append(contentsOf: $0) }
    }

    /// Sends the waiting bytes, as far as the kernel takes them.
    final func flush(before sequel: Sequel = .more) -> WriteOutcome {
        while unsentBytes > 0 {
            guard isWritable else { return .queued }
            let count = unsent.withUnsafeBytes { bytes in
                let rest = UnsafeRawBufferPointer(rebasing: bytes[unsentStart...])
                let (base, waits) = (rest.baseAddress, sequel.rawValue)
                return clinux_send(descriptor, base, rest.count, nil, 0, waits)
            }
            if count > 0 {
                hasSent = true
                unsentStart += count
            } else if errno == EAGAIN {
                isWritable = false
            } else if errno != EINTR {
                return sendFailed()
            }
        }
        unsent.removeAll(keepingCapacity: unsent.capacity <= Self.keptCapacity)
        unsentStart = 0
        return .sent
    }

    /// Takes errno from the failed call, and remembers that the connection is broken. EPIPE is no
    /// break: the peer has ended its direction, and all that it sent before has come (tcp_reset in
    /// Linux).
    private func sendFailed() -> WriteOutcome {
        let error = SocketError("send")
        if error.code != EPIPE { breakCode = error.code }
        return .failed(.socket(error))
    }

    /// Moves the output of the TLS machine into the unsent bytes, and sends.
    final func sendCiphertext(of tls: TLSSession, before sequel: Sequel = .more) -> WriteOutcome {
        tls.takeCiphertext(into: &unsent)
        return flush(before: sequel)
    }
}
