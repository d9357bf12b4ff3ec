# A key of one region seals nothing that is kept in all. Clusters' secrets lie where this one does.
locals {
  secret_region = coalesce(var.secret_replication, var.kms_key == null ? "automatic" : "regional") == "regional" ? local.region : ""
}

# Ingest faces the Internet, and has a key of its own for the few records that it reads and writes.
# Names do not begin as those of clusters' secrets do, NAME_, so that no right to them is one to these.
resource "google_secret_manager_secret" "key" {
  for_each = toset(["ingest", "sealing"])

  project   = local.with.secretmanager
  secret_id = "${var.name}-${each.key}-key"
  labels    = local.labels

  replication {
    dynamic "auto" {
      for_each = local.secret_region == "" ? [1] : []

      content {}
    }

    dynamic "user_managed" {
      for_each = local.secret_region == "" ? [] : [local.secret_region]

      content {
        replicas {
          location = user_managed.value

          dynamic "customer_managed_encryption" {
            for_each = local.keys

            content {
              kms_key_name = customer_managed_encryption.value
            }
          }
        }
      }
    }
  }

  depends_on = [time_sleep.keys]

  # In another place it would be another secret, with another key, which opens nothing.
  lifecycle {
    ignore_changes = [replication]
  }
}

# A key is drawn by the apply that makes it, from more than its 256 random bits, written once, and
# never in the state or in a plan. Later applies draw, too, and write nothing.
resource "google_secret_manager_secret_version" "key" {
  for_each = google_secret_manager_secret.key

  secret                 = each.value.id
  secret_data_wo         = base64sha256(join("", [each.key, uuid(), uuid(), uuid()]))
  secret_data_wo_version = "1"
}
