import Glibc
import TLSSession

extension Connection {
    /// Reads once into the lane's input buffer.
    package final func read() -> ReadOutcome {
        guard isReadable, !isClosed else { return .wouldBlock }
        guard let tls else { return receive(input) }
        return read(through: tls)
    }

    /// The lane's memory for input, so much of it as this connection may use.
    private var input: UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(rebasing: lane.input.prefix(inputMax))
    }

    final func receive(_ buffer: UnsafeMutableRawBufferPointer) -> ReadOutcome {
        let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
        if count > 0 {
            lane.inputCount += count
            // A short read empties the socket; news after it is a new edge. An end that was already
            // announced is not announced again.
            if count < buffer.count, !isEnding { socketIsReadable = false }
            let octets = UnsafeRawBufferPointer(rebasing: buffer[..<count])
            return .octets(octets.assumingMemoryBound(to: UInt8.self))
        }
        if count == 0 { return .ended }
        switch errno {
        case EAGAIN:
            socketIsReadable = false
            return .wouldBlock
        case EINTR: return receive(buffer)
        default: return .failed(.socket(SocketError("recv")))
        }
    }

    /// Decrypted bytes that are there already come first; then one read from the socket.
    private func read(through tls: TLSSession) -> ReadOutcome {
        let isEmpty = tls.isEstablished && !mayHoldPlaintext
        var outcome = isEmpty ? TLSSession.ReadOutcome.needsInput : tls.read(into: input)
        while true {
            switch outcome {
            case .octets(let count):
                mayHoldPlaintext = tls.mayHoldPlaintext
                let octets = UnsafeRawBufferPointer(rebasing: input[..<count])
                return .octets(octets.assumingMemoryBound(to: UInt8.self))
            case .needsInput: mayHoldPlaintext = false
            case .closed:
                mayHoldPlaintext = true
                return .ended
            case .failed(let error):
                _ = sendCiphertext(of: tls)
                return .failed(.tls(error))
            }
            if tls.hasCiphertext, case .failed(let error) = sendCiphertext(of: tls) {
                return .failed(error)
            }
            switch receive(lane.ciphertextInput) {
            case .octets(let octets): outcome = tls.read(into: input, feeding: octets.span)
            case .wouldBlock: return .wouldBlock
            case .ended: return .failed(.truncated)
            case .failed(let error): return .failed(error)
            }
        }
    }
}
