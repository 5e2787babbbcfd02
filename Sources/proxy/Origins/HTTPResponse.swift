/// A whole response.
package struct HTTPResponse: Sendable, Equatable {
    package struct Field: Sendable, Equatable {
        package let name: String
        package let value: String
    }

    package let status: Int
    /// As they came, in their order.
    package let fields: [Field]
    package var content: [UInt8] = []

    /// The value of the first field of a name, case aside.
    package func field(_ name: String) -> String? {
        fields.first { $0.name.lowercased() == name.lowercased() }?.value
    }
}
