/// What a service answered.
package struct HTTPSAnswer: Hashable, Sendable {
    package let status: Int
    /// Seconds that it asks to wait; `nil` when it says nothing.
    package let retryAfter: Int?
    package let content: [UInt8]
}
