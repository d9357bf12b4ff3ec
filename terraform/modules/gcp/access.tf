# An account for each function, with what that stage does and nothing else. People have theirs by the
# same roles.
locals {
  rights = merge({
    ingest = {
      # It requests the owner of a drifted object at once.
      publishes = ["apply", "confirm", "evaluate", "sweep"]
      secrets   = {}
    }
    evaluate = {
      # It checks with access reviews what a service account may read, and sends notifications.
      publishes = ["confirm", "deploy", "evaluate", "patient", "probe", "review"]
      secrets   = {}
    }
    deploy = {
      # An action of a CloudEvent that deletes is evaluated again; a resync reads Bellhop's writes back.
      publishes = concat(["apply", "deploy", "evaluate", "review", "status", "sweep"], local.charts)
      secrets   = { kubeconfig = "read_secrets" }
    }
    sweep = {
      publishes = ["apply", "confirm", "deploy", "evaluate", "patient", "probe", "review", "status", "sweep"]
      # It renews registrations before the senders' credentials expire, and keeps the credentials of
      # a former cluster of the same name. Where objects register clusters, it stores and deletes their
      # kubeconfigs. A write that lost the race deletes what it created.
      secrets = {
        abandoned  = "write_secrets"
        kubeconfig = var.configuration_cluster ? "write_secrets" : "read_secrets"
      }
    }
    # It publishes delayed messages of all queues, and reads the dead letters of Pub/Sub.
    schedule = {
      publishes = keys(local.inboxes)
      secrets   = {}
    }
    }, {
    # It has deploy's rights to apply a profile, and publishes the rest of its work to itself; deploy
    # counts the stage of a promotion that has waited for it.
    for each in local.charts : each => {
      publishes = ["apply", "charts", "deploy", "status", "sweep"]
      secrets   = { kubeconfig = "read_secrets" }
    }
  })

  # Each action is one that Google's documents ask for a call that Bellhop makes.
  roles = {
    records      = ["datastore.entities.create", "datastore.entities.delete", "datastore.entities.get", "datastore.entities.list", "datastore.entities.update"]
    read_records = ["datastore.entities.get", "datastore.entities.list"]
    # Overwriting an object needs the right to delete it; without the last one Cloud Storage answers
    # 403 for a missing object.
    blobs       = ["storage.objects.create", "storage.objects.delete", "storage.objects.get", "storage.objects.list"]
    read_blobs  = ["storage.objects.get", "storage.objects.list"]
    write_blobs = ["storage.objects.create", "storage.objects.delete"]

    read_logs    = ["logging.logEntries.list"]
    read_view    = ["logging.views.access"]
    read_metrics = ["monitoring.timeSeries.list"]
    read_secrets = ["secretmanager.versions.access"]
    write_secrets = [
      "secretmanager.secrets.delete", "secretmanager.versions.access", "secretmanager.versions.add",
      "secretmanager.versions.destroy", "secretmanager.versions.list",
    ]
    # This right is checked for the project, so that no condition on a name can narrow it.
    make_secrets = ["secretmanager.secrets.create"]
  }

  publishing = merge([
    for who, inboxes in merge({ for stage, each in local.rights : stage => each.publishes }, { for who in local.operators : who => keys(local.inboxes) }) :
    { for inbox in inboxes : "${who}-${inbox}" => { who = who, inbox = inbox } }
  ]...)

  # Ingest faces the Internet, and has only its own key.
  unsealing = {
    for each in setproduct(concat(keys(local.rights), keys(local.people)), ["ingest", "sealing"]) : join("-", each) => { who = each[0], key = each[1] }
    if each[0] != "ingest" || each[1] == "ingest"
  }

  opening = merge(concat(
    [for stage, each in local.rights : { for start, role in each.secrets : join("-", compact([stage, trimprefix(start, "kubeconfig")])) => { who = stage, start = start, role = role } }],
    [for who in local.operators : { (who) = { who = who, start = "", role = "write_secrets" } }],
  )...)

  # Ingest reads the blobs of ingest policies, and writes those of observations.
  objects = "projects/_/buckets/${google_storage_bucket.blobs.name}"
  keeping = merge(
    { for stage in keys(local.rights) : stage => { who = stage, role = "blobs", on = "" } if stage != "ingest" },
    { for who, kind in local.people : who => { who = who, role = kind == "operator" ? "blobs" : "read_blobs", on = "" } },
    {
      ingest-gate        = { who = "ingest", role = "read_blobs", on = "resource.name == \"${local.objects}\" || resource.name.startsWith(\"${local.objects}/objects/blobs/gate/\")" }
      ingest-observation = { who = "ingest", role = "write_blobs", on = "resource.name.startsWith(\"${local.objects}/objects/blobs/observation/\")" }
    },
  )
}

resource "google_project_iam_custom_role" "this" {
  for_each = local.roles

  project     = local.with.iam
  role_id     = "${replace(var.name, "-", "_")}.${each.key}"
  title       = "Bellhop ${var.name}: ${replace(each.key, "_", " ")}"
  permissions = each.value
}

# The accounts beside those of the stages build functions, push messages, call the schedule function,
# and receive Google's events.
resource "google_service_account" "this" {
  for_each = toset(concat(keys(local.rights), ["build", "push", "tick"], tolist(local.hearing)))

  project      = local.with.iam
  account_id   = "${var.name}-${each.key}"
  display_name = "Bellhop ${var.name}: ${each.key}"
}

resource "google_project_iam_member" "records" {
  for_each = merge({ for stage in keys(local.rights) : stage => "function" }, local.people)

  project = local.project
  role    = google_project_iam_custom_role.this[each.value == "reader" ? "read_records" : "records"].name
  member  = local.members[each.key]

  condition {
    title      = "${var.name}-records"
    expression = "resource.name == \"projects/${local.project}/databases/${google_firestore_database.records.name}\""
  }
}

resource "google_storage_bucket_iam_member" "blobs" {
  for_each = local.keeping

  bucket = google_storage_bucket.blobs.name
  role   = google_project_iam_custom_role.this[each.value.role].name
  member = local.members[each.value.who]

  dynamic "condition" {
    for_each = compact([each.value.on])

    content {
      title      = "${var.name}-blobs"
      expression = condition.value
    }
  }
}

resource "google_secret_manager_secret_iam_member" "key" {
  for_each = local.unsealing

  project   = local.project
  secret_id = google_secret_manager_secret.key[each.value.key].secret_id
  role      = google_project_iam_custom_role.this["read_secrets"].name
  member    = local.members[each.value.who]
}

# No installation's name has a `_`, so that this prefix matches only names of this one.
resource "google_project_iam_member" "secrets" {
  for_each = local.opening

  project = local.project
  role    = google_project_iam_custom_role.this[each.value.role].name
  member  = local.members[each.value.who]

  condition {
    title      = "${var.name}-secrets"
    expression = "resource.name.startsWith(\"projects/${local.number}/secrets/${var.name}_${each.value.start}\")"
  }
}

resource "google_project_iam_member" "new_secrets" {
  for_each = toset(concat(["sweep"], local.operators))

  project = local.project
  role    = google_project_iam_custom_role.this["make_secrets"].name
  member  = local.members[each.key]
}

resource "google_pubsub_topic_iam_member" "publish" {
  for_each = local.publishing

  project = local.project
  topic   = google_pubsub_topic.inbox[each.value.inbox].name
  role    = "roles/pubsub.publisher"
  member  = local.members[each.value.who]
}

resource "google_pubsub_subscription_iam_member" "dead" {
  for_each = google_pubsub_subscription.dead

  project      = local.project
  subscription = each.value.name
  role         = "roles/pubsub.subscriber"
  member       = google_service_account.this["schedule"].member
}

# GKE is asked only for a cluster's address; the cluster's own RBAC grants rights in it.
resource "google_project_iam_member" "clusters" {
  for_each = { for each in setproduct(concat(tolist(local.reaching), local.operators), var.gke_clusters) : join(" ", each) => { who = each[0], cluster = each[1] } }

  project = split("/", each.value.cluster)[1]
  role    = "roles/container.clusterViewer"
  member  = local.members[each.value.who]

  condition {
    title      = "${var.name}-clusters"
    expression = endswith(each.value.cluster, "*") ? "resource.name.startsWith(\"${trimsuffix(each.value.cluster, "*")}\")" : "resource.name == \"${each.value.cluster}\""
  }
}
