package portcullis.client.android

import android.os.Build
import android.security.keystore.KeyPermanentlyInvalidatedException
import android.security.keystore.UserNotAuthenticatedException
import java.io.IOException
import portcullis.client.KeyFailure.Kind

/**
 * What a failure of Android's keystore means.
 *
 * Since Android 13 (API 33) its cause says whether it may pass: `android.security.KeyStoreException`, as for a phone
 * that is locked, or whose remote provisioning has no key left and no network. Such a phone is not broken.
 */
internal object KeystoreErrors {
    fun kind(error: Throwable): Kind {
        var cause: Throwable? = error
        // A chain of causes is short. One that goes round ends.
        for (depth in 0 until 8) {
            when (cause) {
                null -> return Kind.BROKEN
                is KeyPermanentlyInvalidatedException -> return Kind.MISSING
                is UserNotAuthenticatedException, is IOException -> return Kind.TRANSIENT
                else -> if (Build.VERSION.SDK_INT >= 33) told(cause)?.let { return it }
            }
            cause = cause.cause
        }
        return Kind.BROKEN
    }

    /** What the system says; `null` for another exception. Only called where the system has its class. */
    private fun told(error: Throwable?): Kind? {
        if (error !is android.security.KeyStoreException) return null
        if (error.numericErrorCode == android.security.KeyStoreException.ERROR_KEY_DOES_NOT_EXIST) return Kind.MISSING
        val isTransient = error.isTransientFailure ||
            error.retryPolicy != android.security.KeyStoreException.RETRY_NEVER
        return if (isTransient) Kind.TRANSIENT else Kind.BROKEN
    }
}
