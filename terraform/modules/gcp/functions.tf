locals {
  stages = merge({
    ingest   = { memory = 512, timeout = 30, concurrency = 40, share = 1, warm = 0 }
    evaluate = { memory = 1024, timeout = 60, concurrency = 8, share = 2, warm = 0 }
    deploy   = { memory = 1024, timeout = 120, concurrency = 8, share = 2, warm = 0 }
    sweep    = { memory = 1024, timeout = 300, concurrency = 4, share = 1, warm = 0 }
    schedule = { memory = 512, timeout = 60, concurrency = 1, share = 0, warm = 0 }
    }, {
    # Helm or kubectl takes a hundred megabytes a message.
    for each in local.charts : each => { memory = 1024, timeout = 300, concurrency = 4, share = 1, warm = 0 }
  })

  # The schedule has one instance, and so has the function that only builds ingest. The other functions
  # share the rest; deploy has what is left over.
  single   = 1 + length(local.unchecked)
  shares   = sum(concat([for each in local.stages : each.share], [for each in local.hearing : local.stages.ingest.share]))
  unit     = floor((var.instances - local.single) / local.shares)
  leftover = var.instances - local.single - local.unit * local.shares

  functions = {
    for stage, usual in local.stages : stage => {
      memory      = coalesce(try(var.functions[stage].memory, null), usual.memory)
      timeout     = coalesce(try(var.functions[stage].timeout, null), usual.timeout)
      concurrency = coalesce(try(var.functions[stage].concurrency, null), usual.concurrency)
      instances   = coalesce(try(var.functions[stage].instances, null), stage == "schedule" ? 1 : usual.share * local.unit + (stage == "deploy" ? local.leftover : 0))
      warm        = coalesce(try(var.functions[stage].warm, null), usual.warm)
    }
  }

  # Those, and what hears Google's own events, if some count: it is ingest behind another door.
  deployed = merge(local.functions, { for each in local.hearing : each => merge(local.functions.ingest, { warm = 0 }) })
  stage_of = { for each in keys(local.deployed) : each => contains(local.hearing, each) ? "ingest" : each }

  # Cloud Run's quota counts processors, of which each instance has one.
  all_instances = sum(concat([for each in local.deployed : each.instances], [for each in local.unchecked : 1]))

  # Those that judge objects by rules, of sources and of checks, with CEL's runtime if it is wanted.
  judging = toset(concat(["deploy", "evaluate"], local.charts))

  # Those that call API servers, of which none is placed where there is no network.
  reaching = toset(concat(["deploy", "sweep"], local.charts))
  placed   = var.network == null ? toset([]) : local.reaching
  egress   = try(var.network.all_traffic, false) ? "VPC_EGRESS_ALL_TRAFFIC" : "VPC_EGRESS_PRIVATE_RANGES_ONLY"

  known_settings = toset([
    "adopt", "attempts", "body_limit", "deletion_agreement", "deletion_floor", "deletion_share",
    "egress_allow", "forwarder_image", "hold_agreement", "hold_from", "hold_share", "hold_window",
    "ledger_days", "ledger_megabytes", "mirrors", "named_clusters", "report_inbox", "retry_ceiling",
    "retry_first", "retry_longest", "revisions",
    "script_first_seconds", "script_memory", "script_seconds", "sweep_bytes", "sweep_interval",
    "template_output", "template_seconds", "turn", "visibility", "workers",
  ])

  may_be_zero = toset(["deletion_floor", "deletion_share", "hold_agreement", "hold_share", "named_clusters", "revisions"])

  environment = merge(
    { for name, value in var.settings : "BELLHOP_${upper(name)}" => value },
    {
      BELLHOP_PROJECT           = local.project
      BELLHOP_DATABASE          = google_firestore_database.records.name
      BELLHOP_BUCKET            = google_storage_bucket.blobs.name
      BELLHOP_TOPICS            = jsonencode({ for inbox, topic in google_pubsub_topic.inbox : inbox => topic.name })
      BELLHOP_SECRETS           = var.name
      BELLHOP_KEY_SECRET        = google_secret_manager_secret.key["sealing"].secret_id
      BELLHOP_INGEST_KEY_SECRET = google_secret_manager_secret.key["ingest"].secret_id
      # Otherwise gRPC writes what it thinks of its connections, in lines that are no JSON.
      GRPC_VERBOSITY = "ERROR"
    },
  )

  # Only a stage that needs it knows more.
  environments = {
    ingest   = merge(local.ingest_key, length(var.ingest_allow) > 0 ? { BELLHOP_INGEST_ALLOW = join(",", var.ingest_allow) } : {})
    evaluate = {}
    deploy   = {}
    charts   = { BELLHOP_HELM = "/workspace/helm/helm", BELLHOP_KUBECTL = "/workspace/kubectl/kubectl" }
    sweep    = merge({ BELLHOP_INGEST_URL = local.ingest_url }, local.secret_region == "" ? {} : { BELLHOP_SECRET_REGION = local.secret_region }, var.kms_key == null ? {} : { BELLHOP_KMS_KEY = var.kms_key })
    schedule = { BELLHOP_GUARD = local.guard }
    events   = local.ingest_key
  }

  variables = {
    for each, size in local.deployed : each => merge(local.environment, local.environments[each], { THREADS = tostring(size.concurrency) })
  }

  ingest_key = { BELLHOP_KEY_SECRET = google_secret_manager_secret.key["ingest"].secret_id, BELLHOP_INGEST_KEY_SECRET = "" }

  addresses = { for stage, function in google_cloudfunctions2_function.stage : stage => function.service_config[0].uri }
}

# Sources are built by Google when a function is made, or its source has another name.
resource "google_storage_bucket" "source" {
  project                     = local.with.storage
  name                        = "${var.name}-${local.project}-source"
  location                    = local.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  force_destroy               = true
  labels                      = local.labels

  dynamic "encryption" {
    for_each = local.keys

    content {
      default_kms_key_name = encryption.value
    }
  }

  depends_on = [time_sleep.keys]
}

resource "google_storage_bucket_object" "source" {
  for_each = local.functions

  bucket = google_storage_bucket.source.name
  name   = local.packages[each.key]
  source = "${var.packages}/${local.packages[each.key]}"

  lifecycle {
    precondition {
      condition     = length(local.stale_packages) == 0
      error_message = "The folder ${var.packages} lacks packages of this module's sources, or has them with other sums than its SHA256SUMS: ${join(", ", local.stale_packages)}. Run `make package` in the checkout that the module is part of, or take the packages of its release."
    }
  }
}

resource "google_cloudfunctions2_function" "stage" {
  for_each = local.deployed

  project     = local.with.cloudfunctions
  location    = local.region
  name        = "${var.name}-${each.key}${contains(local.unchecked, each.key) ? "-build" : ""}"
  description = "Bellhop ${var.name}: ${each.key}"
  labels      = local.labels
  # Google takes only the key of the repository, which keeps the one that it was created with.
  kms_key_name = google_artifact_registry_repository.images.kms_key_name

  build_config {
    runtime           = "python313"
    entry_point       = contains(local.hearing, each.key) ? "hear" : "handle"
    service_account   = google_service_account.this["build"].id
    docker_repository = google_artifact_registry_repository.images.id

    source {
      storage_source {
        bucket = google_storage_bucket.source.name
        object = google_storage_bucket_object.source[local.stage_of[each.key]].name
        # The object whose sum was verified, and no other that somebody writes in its place.
        generation = google_storage_bucket_object.source[local.stage_of[each.key]].generation
      }
    }
  }

  service_config {
    service_account_email            = google_service_account.this[local.stage_of[each.key]].email
    available_cpu                    = "1"
    available_memory                 = "${each.value.memory}Mi"
    timeout_seconds                  = each.value.timeout
    max_instance_request_concurrency = each.value.concurrency
    max_instance_count               = contains(local.unchecked, each.key) ? 1 : each.value.instances
    min_instance_count               = contains(local.unchecked, each.key) ? 0 : each.value.warm
    all_traffic_on_latest_revision   = true
    ingress_settings                 = each.key == "ingest" && !contains(local.unchecked, each.key) ? local.ingress[0] : "ALLOW_INTERNAL_ONLY"
    environment_variables            = local.variables[each.key]
    direct_vpc_egress                = contains(local.placed, each.key) ? local.egress : null

    dynamic "direct_vpc_network_interface" {
      for_each = contains(local.placed, each.key) ? [var.network] : []

      content {
        network    = direct_vpc_network_interface.value.network
        subnetwork = direct_vpc_network_interface.value.subnetwork
        tags       = direct_vpc_network_interface.value.tags
      }
    }
  }

  depends_on = [google_secret_manager_secret_version.key, time_sleep.grants]
}

# A build fails before its account's grants are known everywhere, and so does a function's first start.
# No call says when they are. A new account waits again.
resource "time_sleep" "grants" {
  create_duration = local.propagation
  triggers        = { for each, account in google_service_account.this : each => account.account_id }

  depends_on = [
    google_artifact_registry_repository_iam_member.build,
    google_project_iam_member.bucket_events,
    google_project_iam_member.build,
    google_project_iam_member.events,
    google_project_iam_member.records,
    google_project_iam_member.secrets,
    google_project_iam_member.sources,
    google_secret_manager_secret_iam_member.key,
    google_storage_bucket_iam_member.blobs,
  ]

  lifecycle {
    precondition {
      condition     = local.all_instances <= var.instances
      error_message = "The functions may have ${local.all_instances} instances together, and `instances` allows ${var.instances}: raise it, or lower those of `functions`."
    }
  }
}

# What Google has built: in no repository that functions of others share.
resource "google_artifact_registry_repository" "images" {
  project       = local.with.artifactregistry
  location      = local.region
  repository_id = var.name
  description   = "What the functions of Bellhop ${var.name} run"
  format        = "DOCKER"
  kms_key_name  = var.kms_key
  labels        = local.labels

  # Each build leaves an image. The newest of a package, which its function runs, is kept.
  cleanup_policies {
    id     = "keep-newest"
    action = "KEEP"

    most_recent_versions {
      keep_count = 3
    }
  }

  cleanup_policies {
    id     = "delete-old"
    action = "DELETE"

    condition {
      tag_state  = "ANY"
      older_than = "604800s"
    }
  }

  depends_on = [time_sleep.keys]

  # Another key would be another repository, without the images that functions run.
  lifecycle {
    ignore_changes = [kms_key_name]
  }
}

# The account that builds functions has only the permissions that a build needs. It reads the sources
# in our bucket, and in the one that Google copies them to.
resource "google_artifact_registry_repository_iam_member" "build" {
  project    = local.project
  location   = local.region
  repository = google_artifact_registry_repository.images.repository_id
  role       = "roles/artifactregistry.writer"
  member     = google_service_account.this["build"].member
}

resource "google_project_iam_member" "build" {
  project = local.project
  role    = "roles/logging.logWriter"
  member  = google_service_account.this["build"].member
}

resource "google_project_iam_member" "sources" {
  project = local.project
  role    = "roles/storage.objectViewer"
  member  = google_service_account.this["build"].member

  condition {
    title      = "${var.name}-sources"
    expression = join(" || ", [for each in ["${var.name}-${local.project}-source", "gcf-v2-"] : "resource.name.startsWith(\"projects/_/buckets/${each}\")"])
  }
}
