# Key rings of Cloud KMS can never be deleted, so that a second installation of the same name would
# fail: the module creates none, and uses the given key. Only the service agents may use it, and no
# function.
locals {
  keys = var.kms_key == null ? [] : [var.kms_key]

  # Google asks for Eventarc's grant, too, before it builds a function under a key.
  key_agents = var.kms_key == null ? {} : {
    artifactregistry = "gcp-sa-artifactregistry"
    cloudfunctions   = "gcf-admin-robot"
    eventarc         = "gcp-sa-eventarc"
    firestore        = "gcp-sa-firestore"
    pubsub           = "gcp-sa-pubsub"
    run              = "serverless-robot-prod"
    secretmanager    = "gcp-sa-secretmanager"
    storage          = "gs-project-accounts"
  }

  key_users = merge(
    { for service, agent in local.key_agents : service => "service-${local.number}@${agent}.iam.gserviceaccount.com" },
    { for each in data.google_logging_project_cmek_settings.agent : "logging" => each.service_account_id },
  )
}

# To read this creates the account by which Cloud Logging uses a key.
data "google_logging_project_cmek_settings" "agent" {
  count = length(local.keys)

  project = local.with.logging

  depends_on = [time_sleep.services]
}

resource "google_kms_crypto_key_iam_member" "agent" {
  for_each = local.key_users

  crypto_key_id = var.kms_key
  role          = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
  member        = "serviceAccount:${each.value}"

  depends_on = [data.google_storage_project_service_account.agent, google_project_service_identity.agent]
}

# A grant takes minutes to reach all of Google's servers, and no call says when it has.
resource "time_sleep" "keys" {
  for_each = google_kms_crypto_key_iam_member.agent

  create_duration = local.propagation
}
