# What each installation draws for names that a destroy leaves taken: the sealing key can be had back
# for days, and so can secrets of clusters. The next installation of the name has other ones.
resource "terraform_data" "generation" {
}

locals {
  generation = substr(terraform_data.generation.id, 0, 8)

  parameters = var.kubeconfig_store == "parameter-store"

  # How the names of clusters' secrets begin: a slash before says that they are parameters, whose names
  # may not begin with `aws` or `ssm`, as those of installations may.
  secrets = "${local.parameters ? "/bellhop/" : ""}${var.name}/${local.generation}"

  # How their ARNs begin.
  kubeconfigs = "arn:${local.partition}:${local.parameters ? "ssm" : "secretsmanager"}:${local.region}:${local.account}:${local.parameters ? "parameter" : "secret:"}${local.secrets}"

  kubeconfig_actions = {
    parameter-store = {
      read  = ["ssm:GetParameter"]
      write = ["ssm:DeleteParameter", "ssm:GetParameter", "ssm:PutParameter"]
    }
    secrets-manager = {
      read  = ["secretsmanager:GetSecretValue"]
      write = ["secretsmanager:CreateSecret", "secretsmanager:DeleteSecret", "secretsmanager:GetSecretValue", "secretsmanager:PutSecretValue", "secretsmanager:RestoreSecret"]
    }
  }[var.kubeconfig_store]

  # Ingest faces the Internet, and has a key of its own for the few records that it reads and writes.
  sealing = {
    ingest  = "Seals what ingest of Bellhop ${var.name} reads and writes."
    sealing = "Seals records of Bellhop ${var.name}: without it they are lost."
  }
}

# AWS generates each key, which is written once, and is never in the state or in a plan.
ephemeral "aws_secretsmanager_random_password" "key" {
  for_each = local.sealing

  password_length = 64
}

# Names do not begin as those of clusters' secrets do, so that no list of them has these.
resource "aws_secretsmanager_secret" "key" {
  for_each = local.sealing

  name                    = "${var.name}-${each.key}-key-${local.generation}"
  description             = each.value
  kms_key_id              = local.kms_key
  recovery_window_in_days = var.recovery_days
  tags                    = local.labels
}

resource "aws_secretsmanager_secret_version" "key" {
  for_each = local.sealing

  secret_id                = aws_secretsmanager_secret.key[each.key].id
  secret_string_wo         = base64sha256(ephemeral.aws_secretsmanager_random_password.key[each.key].random_password)
  secret_string_wo_version = 1
}
