import ConfigurationReading

/// The files of a configuration that came from the fuzzer: itself and nothing else.
struct FuzzFiles: ConfigurationFiles {
    let bytes: [UInt8]

    func contents(of path: String, limit: Int) throws(FileFault) -> [UInt8] {
        guard path == "fuzz.yaml" else { throw .missing }
        guard bytes.count <= limit else { throw .tooLarge }
        return bytes
    }

    func names(in folder: String) throws(FileFault) -> [String] { throw .missing }

    func permissions(of path: String) throws(FileFault) -> UInt16 {
        guard path == "fuzz.yaml" else { throw .missing }
        return 0o600
    }
}
