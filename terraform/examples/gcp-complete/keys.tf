# A key ring can never be deleted: after a destroy, import it again or name another one.
resource "google_kms_key_ring" "this" {
  name     = "bellhop-production"
  location = var.region
}

resource "google_kms_crypto_key" "this" {
  name            = "bellhop-production"
  key_ring        = google_kms_key_ring.this.id
  rotation_period = "7776000s"
}
