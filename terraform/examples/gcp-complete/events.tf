# Stands for the bucket whose new objects count as events of a cluster. It is in the region of its rule.
resource "google_storage_bucket" "uploads" {
  project                     = time_sleep.services.triggers.storage
  name                        = "${var.project}-uploads"
  location                    = var.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
}
