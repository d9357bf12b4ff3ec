# A key ring can never be deleted: after a destroy, import it again or name another one.
resource "google_kms_key_ring" "this" {
  project  = time_sleep.services.triggers.cloudkms
  name     = "bellhop-production"
  location = var.region
}

resource "google_kms_crypto_key" "this" {
  name            = "bellhop-production"
  key_ring        = google_kms_key_ring.this.id
  rotation_period = "7776000s"
}

locals {
  # The id of a key that is still to be created is unknown to a plan, and the module must know it.
  kms_key = "projects/${var.project}/locations/${var.region}/keyRings/${google_kms_key_ring.this.name}/cryptoKeys/${google_kms_crypto_key.this.name}"
}
