resource "google_firestore_database" "records" {
  project                           = local.with.firestore
  name                              = coalesce(var.database, var.name)
  location_id                       = local.region
  type                              = "FIRESTORE_NATIVE"
  concurrency_mode                  = "OPTIMISTIC"
  app_engine_integration_mode       = "DISABLED"
  point_in_time_recovery_enablement = "POINT_IN_TIME_RECOVERY_ENABLED"
  delete_protection_state           = var.deletion_protection ? "DELETE_PROTECTION_ENABLED" : "DELETE_PROTECTION_DISABLED"
  # Without it a destroy would leave the database, and no other of its name could be made.
  deletion_policy = "DELETE"

  dynamic "cmek_config" {
    for_each = local.keys

    content {
      kms_key_name = cmek_config.value
    }
  }

  depends_on = [time_sleep.keys]

  # Another key would be another database, without the records. Where a restored database was not
  # imported, Google refuses to create another one of its name, before Terraform deletes the former one.
  lifecycle {
    create_before_destroy = true
    ignore_changes        = [cmek_config]
  }
}

# Items are found only by their keys. An index of a field would cost a write for each write, be too
# small for a value, and with times in it grow at one end, which Firestore slows down.
resource "google_firestore_field" "unindexed" {
  for_each = toset(["items", "secrets"])

  project    = local.project
  database   = google_firestore_database.records.name
  collection = each.key
  field      = "*"

  index_config {}
}

resource "google_firestore_field" "expires" {
  project    = local.project
  database   = google_firestore_database.records.name
  collection = "items"
  field      = "expires"

  index_config {}
  ttl_config {}

  # One change of a collection at a time.
  depends_on = [google_firestore_field.unindexed]
}

# Keys are in order by themselves; reading backwards uses a field that repeats them. They begin with
# a digest, so that this index grows everywhere.
resource "google_firestore_field" "place" {
  project    = local.project
  database   = google_firestore_database.records.name
  collection = "items"
  field      = "place"

  index_config {
    indexes {
      order       = "DESCENDING"
      query_scope = "COLLECTION"
    }
  }

  depends_on = [google_firestore_field.expires]
}

resource "google_firestore_backup_schedule" "daily" {
  project   = local.project
  database  = google_firestore_database.records.name
  retention = "${var.recovery_days * 86400}s"

  daily_recurrence {}
}
