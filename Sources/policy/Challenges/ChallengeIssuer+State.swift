package import ByteCoding

// From one process to the next: all that was spent, and what challenges are recognised by.
extension ChallengeIssuer {
    private static let version: UInt8 = 1

    /// What the next process needs. Whoever reads it can make challenges: it goes to that process
    /// and nowhere else. Nothing may be issued or spent here afterwards, but by it: see
    /// ``handOver(to:)``.
    package var state: [UInt8] {
        var out = ByteWriter()
        out.byte(Self.version)
        out.word(epoch)
        out.block(secret)
        enrolment.write(to: &out)
        assertion.write(to: &out)
        earlier.write(to: &out)
        tried.write(to: &out)
        return out.bytes
    }

    /// An issuer that goes on where another process has stopped.
    ///
    /// - `state`: of that process. Lifetimes and capacity may be others than there.
    package convenience init(
        lifetimes: Lifetimes = Lifetimes(),
        capacity: Int = capacityDefault,
        enrolmentSecret: [UInt8]? = nil,
        goingOnFrom state: [UInt8]
    ) throws(ByteReader.Fault) {
        var state = ByteReader(state)
        guard try state.byte() == Self.version else { throw ByteReader.Fault() }
        let epoch = try state.word()
        let secret = try state.block(max: 32)
        guard secret.count == 32 else { throw ByteReader.Fault() }
        self.init(
            lifetimes: lifetimes,
            capacity: capacity,
            secret: secret,
            enrolmentSecret: enrolmentSecret,
            epoch: epoch
        )
        try enrolment.take(from: &state)
        try assertion.take(from: &state)
        try earlier.take(from: &state)
        try tried.take(from: &state)
        try state.end()
    }
}

extension ChallengeSerial {
    package func write(to out: inout ByteWriter) {
        out.byte(purpose.rawValue)
        out.word(epoch)
        out.word(number)
        out.number(expiry)
    }

    package init(from bytes: inout ByteReader) throws(ByteReader.Fault) {
        guard let purpose = ChallengePurpose(rawValue: try bytes.byte()) else {
            throw ByteReader.Fault()
        }
        self.purpose = purpose
        epoch = try bytes.word()
        number = try bytes.word()
        expiry = try bytes.number()
    }
}
