/// What a rule asks of the two bits that Apple keeps for the request's device.
package struct DeviceRule: Hashable, Sendable {
    /// How long Apple may take where a rule does not say: 2s.
    package static let defaultTimeout = Duration.seconds(2)

    /// A device whose bits are one of these is refused. Bits that were never set are both clear.
    package var refused: Set<DeviceBits>
    /// What happens when Apple tells nothing.
    package var onError: DependencyErrorRule
    /// How long the request waits for Apple.
    package var timeout: Duration

    package init(
        refused: Set<DeviceBits>,
        onError: DependencyErrorRule = .refuse,
        timeout: Duration = defaultTimeout
    ) {
        self.refused = refused
        self.onError = onError
        self.timeout = timeout
    }
}

/// The two bits that Apple keeps for a device (DeviceCheck).
///
/// They belong to the developer team and the device, not to one app: all apps of a team see the
/// same bits, and a reinstall doesn't change them.
package struct DeviceBits: Hashable, Sendable {
    package let bit0: Bool
    package let bit1: Bool

    package init(bit0: Bool, bit1: Bool) {
        self.bit0 = bit0
        self.bit1 = bit1
    }

    /// The bits of a device for which they were never set: Apple has none for it.
    package static let neverSet = DeviceBits(bit0: false, bit1: false)

    /// All four values.
    package static let all = [false, true].flatMap { bit0 in
        [false, true].map { DeviceBits(bit0: bit0, bit1: $0) }
    }

    /// The log's form: `1,0` is bit 0 set and bit 1 not.
    package var text: String { "\(bit0 ? 1 : 0),\(bit1 ? 1 : 0)" }

    /// The origins' form (RFC 8941 §3.2, a dictionary). No ``DeviceChange`` has this form. So an
    /// application that copies fields of the request into its response changes nothing. Otherwise
    /// it could undo what another response has changed meanwhile.
    package var fieldText: String { "bit0=\(bit0 ? 1 : 0), bit1=\(bit1 ? 1 : 0)" }
}

/// A change of a device's bits, which may leave one of them as it is.
package struct DeviceChange: Hashable, Sendable {
    /// The new value of bit 0; `nil` leaves it.
    package let bit0: Bool?
    package let bit1: Bool?

    package init(bit0: Bool?, bit1: Bool?) {
        self.bit0 = bit0
        self.bit1 = bit1
    }

    /// Reads the value of an origin's field: two of `0`, `1` and `-`, with a comma between them and
    /// white space around it (RFC 9110 §5.6.1). `nil` for anything else.
    package init?(field: Span<UInt8>) {
        var words: [UInt8] = []
        for index in field.indices where field[index] != 0x20 && field[index] != 0x09 {
            words.append(field[index])
        }
        guard words.count == 3, words[1] == UInt8(ascii: ","), let bit0 = Self.bit(words[0]),
            let bit1 = Self.bit(words[2])
        else { return nil }
        self.init(bit0: bit0, bit1: bit1)
    }

    /// `.some(nil)` for a bit that stays.
    private static func bit(_ byte: UInt8) -> Bool?? {
        switch byte {
        case UInt8(ascii: "0"): .some(false)
        case UInt8(ascii: "1"): .some(true)
        case UInt8(ascii: "-"): .some(nil)
        default: nil
        }
    }

    /// Whether both bits stay.
    package var isEmpty: Bool { bit0 == nil && bit1 == nil }

    /// Both bits, where the change names both: then the gateway need not read the old bits.
    package var whole: DeviceBits? {
        guard let bit0, let bit1 else { return nil }
        return DeviceBits(bit0: bit0, bit1: bit1)
    }

    /// The bits after the change. Apple takes both at once, so the unchanged bit is sent too.
    package func applied(to bits: DeviceBits) -> DeviceBits {
        DeviceBits(bit0: bit0 ?? bits.bit0, bit1: bit1 ?? bits.bit1)
    }
}
