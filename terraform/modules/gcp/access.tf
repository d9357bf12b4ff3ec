# An account for each function, with what that stage does and nothing else.
locals {
  rights = merge({
    ingest = {
      # Of what drifts its owner hears at once.
      publishes = ["apply", "confirm", "evaluate", "sweep"]
      secrets   = {}
    }
    evaluate = {
      # What a service account may see is asked of the cluster; what is not well is told of.
      publishes = ["confirm", "deploy", "evaluate", "patient", "probe", "review"]
      secrets   = {}
    }
    deploy = {
      # What a CloudEvent's action takes away is judged once more; a sweep has what was brought ring.
      publishes = concat(["apply", "deploy", "evaluate", "review", "sweep"], local.charts)
      secrets   = { kubeconfig = "read_secrets" }
    }
    sweep = {
      publishes = ["apply", "confirm", "deploy", "evaluate", "patient", "probe", "review", "sweep"]
      # It registers clusters anew, before what their senders show has ended. A write that another
      # one overtook takes away what it made.
      secrets = { "" = "write_secrets" }
    }
    # It publishes what has rested anywhere, and takes what Pub/Sub has buried.
    schedule = {
      publishes = keys(local.inboxes)
      secrets   = {}
    }
    }, {
    # It has what deploy has to apply a profile, and hands to itself what is left of a turn.
    for each in local.charts : each => {
      publishes = ["apply", "charts", "sweep"]
      secrets   = { kubeconfig = "read_secrets" }
    }
  })

  # Each action is one that Google's documents ask for a call that Bellhop makes.
  roles = {
    records = ["datastore.entities.create", "datastore.entities.delete", "datastore.entities.get", "datastore.entities.list", "datastore.entities.update"]
    # To write over what is there asks for the right to delete it, and without the last Cloud Storage
    # says of what is not there that it is forbidden.
    blobs = ["storage.objects.create", "storage.objects.delete", "storage.objects.get", "storage.objects.list"]

    read_secrets = ["secretmanager.versions.access"]
    write_secrets = [
      "secretmanager.secrets.delete", "secretmanager.versions.access", "secretmanager.versions.add",
      "secretmanager.versions.destroy", "secretmanager.versions.list",
    ]
    # Asked of the project, which has no name that a condition could tell from another.
    make_secrets = ["secretmanager.secrets.create"]
  }

  publishing = merge([
    for stage, each in local.rights : { for inbox in each.publishes : "${stage}-${inbox}" => { stage = stage, inbox = inbox } }
  ]...)

  # Ingest faces the Internet, and has its own key alone.
  unsealing = {
    for each in setproduct(keys(local.rights), ["ingest", "sealing"]) : join("-", each) => { stage = each[0], key = each[1] }
    if each[0] != "ingest" || each[1] == "ingest"
  }

  opening = merge([
    for stage, each in local.rights : { for start, role in each.secrets : stage => { start = start, role = role } }
  ]...)
}

resource "google_project_iam_custom_role" "this" {
  for_each = local.roles

  project     = local.with.iam
  role_id     = "${replace(var.name, "-", "_")}.${each.key}"
  title       = "Bellhop ${var.name}: ${replace(each.key, "_", " ")}"
  permissions = each.value
}

resource "google_service_account" "stage" {
  for_each = local.rights

  project      = local.with.iam
  account_id   = "${var.name}-${each.key}"
  display_name = "Bellhop ${var.name}: ${each.key}"
}

resource "google_project_iam_member" "records" {
  for_each = local.rights

  project = local.project
  role    = google_project_iam_custom_role.this["records"].name
  member  = google_service_account.stage[each.key].member

  condition {
    title      = "${var.name}-records"
    expression = "resource.name == \"projects/${local.project}/databases/${google_firestore_database.records.name}\""
  }
}

resource "google_storage_bucket_iam_member" "blobs" {
  for_each = local.rights

  bucket = google_storage_bucket.blobs.name
  role   = google_project_iam_custom_role.this["blobs"].name
  member = google_service_account.stage[each.key].member
}

resource "google_secret_manager_secret_iam_member" "key" {
  for_each = local.unsealing

  project   = local.project
  secret_id = google_secret_manager_secret.key[each.value.key].secret_id
  role      = google_project_iam_custom_role.this["read_secrets"].name
  member    = google_service_account.stage[each.value.stage].member
}

# No installation's name has a `_`: what begins with ours and one is ours alone.
resource "google_project_iam_member" "secrets" {
  for_each = local.opening

  project = local.project
  role    = google_project_iam_custom_role.this[each.value.role].name
  member  = google_service_account.stage[each.key].member

  condition {
    title      = "${var.name}-secrets"
    expression = "resource.name.startsWith(\"projects/${local.number}/secrets/${var.name}_${each.value.start}\")"
  }
}

resource "google_project_iam_member" "new_secrets" {
  project = local.project
  role    = google_project_iam_custom_role.this["make_secrets"].name
  member  = google_service_account.stage["sweep"].member
}

resource "google_pubsub_topic_iam_member" "publish" {
  for_each = local.publishing

  project = local.project
  topic   = google_pubsub_topic.inbox[each.value.inbox].name
  role    = "roles/pubsub.publisher"
  member  = google_service_account.stage[each.value.stage].member
}

resource "google_pubsub_subscription_iam_member" "dead" {
  for_each = google_pubsub_subscription.dead

  project      = local.project
  subscription = each.value.name
  role         = "roles/pubsub.subscriber"
  member       = google_service_account.stage["schedule"].member
}

# What is asked of GKE is where a cluster is; what may be done in it, the cluster itself says.
resource "google_project_iam_member" "clusters" {
  for_each = { for each in setproduct(local.reaching, var.gke_clusters) : join(" ", each) => { stage = each[0], cluster = each[1] } }

  project = split("/", each.value.cluster)[1]
  role    = "roles/container.clusterViewer"
  member  = google_service_account.stage[each.value.stage].member

  condition {
    title      = "${var.name}-clusters"
    expression = endswith(each.value.cluster, "*") ? "resource.name.startsWith(\"${trimsuffix(each.value.cluster, "*")}\")" : "resource.name == \"${each.value.cluster}\""
  }
}
