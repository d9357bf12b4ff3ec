# Stands for the boundary that your organization has: what no role that somebody makes may exceed.
resource "aws_iam_policy" "boundary" {
  name   = "bellhop-production-boundary"
  policy = data.aws_iam_policy_document.boundary.json
}

# A bound allows nothing by itself, so what it names is as wide as all roles together.
data "aws_iam_policy_document" "boundary" {
  # checkov:skip=CKV_AWS_107:It grants nothing, and each role has less.
  # checkov:skip=CKV_AWS_108:It grants nothing, and each role has less.
  # checkov:skip=CKV_AWS_109:It grants nothing, and each role has less.
  # checkov:skip=CKV_AWS_111:It grants nothing, and each role has less.
  # checkov:skip=CKV_AWS_356:It grants nothing, and each role has less.
  statement {
    actions   = ["dynamodb:*", "ec2:*", "eks:DescribeCluster", "kms:*", "lambda:InvokeFunction", "logs:*", "s3:*", "secretsmanager:*", "sqs:*", "ssm:DeleteParameter", "ssm:GetParameter", "ssm:PutParameter", "sts:AssumeRole"]
    resources = ["*"]
  }
}
