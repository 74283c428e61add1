#!/usr/bin/env bash
# GRPO with verl 0.9 on one machine with GPUs, rewards and Python calls by a grader. Further arguments go to verl.
#
#     RKGRADE_URL=http://grader:8000 MODEL=Qwen/Qwen2.5-Coder-7B-Instruct examples/verl/grpo.sh trainer.n_gpus_per_node=8
#
# Needs verl with vLLM, and `rkgrade` beside it (its base install). train.parquet and test.parquet are as rows.py makes
# them. A grader that is out of reach is waited for, an hour by default (RKGRADE_PATIENCE_S); then training stops.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${RKGRADE_URL:=http://127.0.0.1:8000}" "${REWARD:=r_inf}" "${DATA:=.}"
export RKGRADE_URL

# max_tool_response_length: verl cuts what a tool says to 256 characters else, the verdict included.
exec "${PYTHON:-python3}" -m verl.trainer.main_ppo \
    data.train_files="$DATA/train.parquet" \
    data.val_files="$DATA/test.parquet" \
    data.max_prompt_length=4096 \
    data.max_response_length=8192 \
    algorithm.adv_estimator=grpo \
    actor_rollout_ref.model.path="${MODEL:?the model to train}" \
    actor_rollout_ref.rollout.name=vllm \
    actor_rollout_ref.rollout.n=8 \
    actor_rollout_ref.rollout.multi_turn.enable=true \
    actor_rollout_ref.rollout.multi_turn.format=hermes \
    actor_rollout_ref.rollout.multi_turn.max_assistant_turns=8 \
    actor_rollout_ref.rollout.multi_turn.tool_config_path="$here/python_tool.yaml" \
    actor_rollout_ref.rollout.multi_turn.max_tool_response_length=4500 \
    reward.reward_manager.name=naive \
    reward.custom_reward_function.path=pkg://rl_client.trainers.verl_reward \
    +reward.custom_reward_function.reward_kwargs.url="$RKGRADE_URL" \
    +reward.custom_reward_function.reward_kwargs.label.reward="$REWARD" \
    trainer.project_name=rkgrade \
    trainer.experiment_name="$REWARD" \
    "$@"
