/// What a rule asks of the two bits that Apple keeps for the request's device.
package struct DeviceRule: Hashable, Sendable {
    /// How long Apple may take where a rule does not say: 2s.
    package static let defaultTimeout = Duration.seconds(2)

    /// A device whose bits are one of these is refused. Bits that were never set are both clear.
    package let refused: Set<DeviceBits>
    /// What happens when Apple tells nothing.
    package let onError: DependencyErrorRule
    /// How long the request waits for Apple.
    package let timeout: Duration

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
