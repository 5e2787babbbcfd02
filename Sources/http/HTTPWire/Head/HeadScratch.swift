/// Where heads are read, one after the other: their memory is used again.
///
/// A head is of use only until the next one of its kind is read.
package final class HeadScratch {
    package var request = RequestHead()
    package var response = ResponseHead()

    package init() {}
}
