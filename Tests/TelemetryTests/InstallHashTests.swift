import Expectations
import Telemetry
import Testing

@Suite struct InstallHashTests {
    /// The value is that of a program in another language, written from the paper.
    @Test func `it is SipHash-1-3`() {
        let hash = InstallHash(key: (0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908))
        let bytes = (0..<32).map { UInt8($0) }
        expectEqual(UInt64(bitPattern: Int64(hash.hash(bytes.span))), 0x81157b6c16a7b60d)
        #expect(hash.hash(bytes.span) != InstallHash(key: (1, 2)).hash(bytes.span))
        expectEqual(hash, InstallHash(key: (0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908)))
    }

    @Test func `a sketch is what its bytes say`() throws {
        var sketch = InstallSketch()
        expectEqual(sketch.bytes, [])
        expectEqual(InstallSketch(bytes: []), sketch)
        for install in 0..<500 { sketch.add(hash: install &* 0x9E37_79B9_7F4A_7C1) }
        let read = try #require(InstallSketch(bytes: sketch.bytes))
        #expect(read == sketch && read.count == sketch.count)
        expectEqual(InstallSketch(bytes: [1, 2]), nil)
        expectEqual(InstallSketch(bytes: [UInt8](repeating: 255, count: 1_024)), nil)
    }
}
