# Key rings of Cloud KMS can never be deleted, so that a second installation of the same name would
# fail: the module creates none, and uses the given key. Only the service agents may use it, and no
# function.
locals {
  key_users = var.kms_key == null ? {} : {
    firestore     = "gcp-sa-firestore"
    pubsub        = "gcp-sa-pubsub"
    secretmanager = "gcp-sa-secretmanager"
    storage       = "gs-project-accounts"
  }
  keys = var.kms_key == null ? [] : [var.kms_key]
}

resource "google_kms_crypto_key_iam_member" "agent" {
  for_each = local.key_users

  crypto_key_id = var.kms_key
  role          = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
  member        = "serviceAccount:service-${local.number}@${each.value}.iam.gserviceaccount.com"

  depends_on = [google_project_service.this]
}
