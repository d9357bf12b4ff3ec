locals {
  # Charts have a queue and a function of their own.
  charts = var.charts ? ["charts"] : []

  # Each inbox, and the stage that works on it.
  inboxes = merge({
    evaluate = "evaluate"
    review   = "evaluate"
    patient  = "evaluate"
    deploy   = "deploy"
    apply    = "deploy"
    status   = "deploy"
    confirm  = "sweep"
    sweep    = "sweep"
    probe    = "sweep"
  }, { for each in local.charts : each => each })

  # Pub/Sub's service agent in this project moves undelivered messages to the dead letters.
  postman = "serviceAccount:service-${local.number}@gcp-sa-pubsub.iam.gserviceaccount.com"
}

resource "google_pubsub_topic" "inbox" {
  for_each = local.inboxes

  project      = local.with.pubsub
  name         = "${var.name}-${each.key}"
  kms_key_name = var.kms_key
  labels       = local.labels

  depends_on = [time_sleep.keys]
}

resource "google_pubsub_topic" "dead" {
  for_each = local.inboxes

  project      = local.with.pubsub
  name         = "${var.name}-${each.key}-dead"
  kms_key_name = var.kms_key
  labels       = local.labels

  depends_on = [time_sleep.keys]
}

resource "google_pubsub_subscription" "inbox" {
  for_each = local.inboxes

  project                    = local.project
  name                       = google_pubsub_topic.inbox[each.key].name
  topic                      = google_pubsub_topic.inbox[each.key].id
  ack_deadline_seconds       = local.functions[each.value].timeout
  message_retention_duration = "604800s"
  labels                     = local.labels

  # The path says which inbox it is: the push itself does not.
  push_config {
    push_endpoint = "${local.addresses[each.value]}/projects/${local.project}/topics/${google_pubsub_topic.inbox[each.key].name}"

    oidc_token {
      service_account_email = google_service_account.this["push"].email
      audience              = local.addresses[each.value]
    }
  }

  # A stage settles what it fails at, with a pause and an end of its own. This is for messages on
  # which nobody reported, since their function could not begin, or was killed.
  retry_policy {
    minimum_backoff = "1s"
    maximum_backoff = "600s"
  }

  dead_letter_policy {
    dead_letter_topic     = google_pubsub_topic.dead[each.key].id
    max_delivery_attempts = max(5, 2 * tonumber(lookup(var.settings, "attempts", "12")))
  }

  expiration_policy {
    ttl = ""
  }

  depends_on = [google_cloud_run_v2_service_iam_member.push, google_pubsub_topic_iam_member.postman]
}

# The schedule function moves these dead letters of Pub/Sub to the others, in the records.
resource "google_pubsub_subscription" "dead" {
  for_each = local.inboxes

  project                    = local.project
  name                       = google_pubsub_topic.dead[each.key].name
  topic                      = google_pubsub_topic.dead[each.key].id
  ack_deadline_seconds       = 60
  message_retention_duration = "2678400s"
  labels                     = local.labels

  expiration_policy {
    ttl = ""
  }
}

resource "google_pubsub_topic_iam_member" "postman" {
  for_each = google_pubsub_topic.dead

  project = local.project
  topic   = each.value.name
  role    = "roles/pubsub.publisher"
  member  = local.postman

  depends_on = [google_project_service_identity.agent]
}

resource "google_pubsub_subscription_iam_member" "postman" {
  for_each = google_pubsub_subscription.inbox

  project      = local.project
  subscription = each.value.name
  role         = "roles/pubsub.subscriber"
  member       = local.postman

  depends_on = [google_project_service_identity.agent]
}

# Pub/Sub writes the tokens that a push shows.
resource "google_service_account_iam_member" "postman" {
  service_account_id = google_service_account.this["push"].name
  role               = "roles/iam.serviceAccountTokenCreator"
  member             = local.postman

  depends_on = [google_project_service_identity.agent]
}

# Only the account of pushes may invoke the functions that queues feed.
resource "google_cloud_run_v2_service_iam_member" "push" {
  for_each = toset(values(local.inboxes))

  project  = local.project
  location = local.region
  name     = google_cloudfunctions2_function.stage[each.key].name
  role     = "roles/run.invoker"
  member   = google_service_account.this["push"].member
}
