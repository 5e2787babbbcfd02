// What a failure of Android's keystore says since API 33.
package android.security

class KeyStoreException(val numericErrorCode: Int, val isTransientFailure: Boolean, val retryPolicy: Int) :
    Exception("keystore error " + numericErrorCode) {
    companion object {
        const val ERROR_KEY_DOES_NOT_EXIST = 12
        const val ERROR_ATTESTATION_KEYS_UNAVAILABLE = 16
        const val RETRY_NEVER = 1
        const val RETRY_WITH_EXPONENTIAL_BACKOFF = 2
    }
}
